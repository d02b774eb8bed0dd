"""The paper's tables and figures, each a plan: which runs it needs, what the paper prints, what came out."""
