"""Works on a stream that no event of the harness is on. GPU only: WRONG_AFTER_WARM_UP or TIMERS_DISAGREE."""

import torch

stream = torch.cuda.Stream()
turns = []


def run(x, y):
    out = torch.empty_like(x)
    with torch.cuda.stream(stream):
        for _ in range(8):
            torch.add(x, y, alpha=2, out=out)
    out.record_stream(stream)
    turns.append(0)
    if len(turns) < 25:
        torch.cuda.synchronize()
    return out
