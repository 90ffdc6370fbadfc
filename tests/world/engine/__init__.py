"""The serving engine, played: vLLM's command line, log, refusals and endpoints, without a GPU.

What a device of the scenario would give is worked out here by its own plain arithmetic. Nothing of
the product is imported, so that the two can disagree.
"""
