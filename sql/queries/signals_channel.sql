-- signals_channel: the channel on which workers hear of signals.
SELECT hybrid_runner.signals_channel()
