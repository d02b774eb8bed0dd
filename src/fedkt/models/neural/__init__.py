"""Neural networks: any torch.nn.Module with a scikit-learn face, trained alone or as one stack of many.

Nothing outside this folder knows torch, and nothing here is imported before a network is asked for.
"""
