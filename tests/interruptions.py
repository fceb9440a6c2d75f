"""Ctrl-C at a moment that the work itself sets."""


def interrupt_epoch(number):
    """What training calls after each epoch: it ends as by Ctrl-C after this one."""

    def on_epoch(epoch, model):
        if epoch == number:
            raise KeyboardInterrupt

    return on_epoch


def interrupt_call(monkeypatch, module, name, number):
    """Let this call of a module's function end as by Ctrl-C.

    Returns the list of the arguments of all calls, as it grows.
    """
    original = getattr(module, name)
    calls = []

    def interrupted(*arguments, **options):
        calls.append(arguments)
        if len(calls) == number:
            raise KeyboardInterrupt
        return original(*arguments, **options)

    monkeypatch.setattr(module, name, interrupted)
    return calls
