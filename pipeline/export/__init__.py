"""What leaves the warehouse as files: written aside, synced and renamed, so that no reader sees half a file."""
