"""What the golden files were asked for on the command line: plans, and runs of `fedkt compare` and `fedkt simulate`."""

NOISES = {
    "laplace": ("--gamma", "0.1"),
    "gaussian": ("--sigma", "8"),
    "gumbel": ("--theta", "0.2"),
    "confident-gaussian": ("--threshold", "4", "--sigma-test", "9", "--sigma", "6", "--answers", "5"),
}
VOTINGS = ("consistent", "expert", "expert-no-counts")
DIGITS = (
    *("compare", "digits", "--algorithms", "fedkt,fedkt-expert,solo", "--seeds", "1", "--model", "tree"),
    *("--parties", "3", "--partition", "even", "--public-share", "0.2"),
)


def plan_words():
    """Every level, voting and noise that go together, then every other thing that a plan can say."""
    for voting in VOTINGS:
        yield f"L0-{voting}", ("--model", "tree", "--voting", voting)
    for level in ("L1", "L2"):
        for noise, scale in NOISES.items():
            for voting in VOTINGS[: 1 if level == "L1" else 2]:
                words = ("--level", level, "--mechanism", noise, *scale, "--queries", "10", "--voting", voting)
                yield f"{level}-{voting}-{noise}", ("--model", "tree", *words)
    yield "L1-epsilon", ("--level", "L1", "--epsilon", "5", "--queries", "0.25", "--delta", "1e-6", "--budget", "7.5")
    yield "L2-epsilon", ("--level", "L2", "--epsilon", "2", "--subsets", "25", "--partitions", "2", "--seed", "private")
    yield (
        "families",
        (
            *("--model", "forest", "--teacher", "tree", "--student", "extra-trees", "--final", "boosting"),
            *("--party-model", "south=logistic", "--partitions", "3", "--subsets", "4", "--seed", "17"),
        ),
    )
    yield "networks", ("--model", "mlp", "--epochs", "3", "--min-parties", "1", "--task", "Wer ist krank? Ärzte")
    yield "rows", ("--voting", "expert", "--rows", "north=1200", "--rows", "south=800", "--subsets", "2")
    yield "columns", ("--categorical", "age", "--ignore", "dose", "--missing", "refuse", "--unseen", "refuse")
    yield "as-seen", ("--missing", "as-seen", "--model", "svm")


TREE, NETWORK = ("--model", "tree"), ("--model", "mlp", "--epochs", "1", "--local-epochs", "1")
ON_DIGITS = ("--parties", "3", "--partition", "balanced", "--public-share", "0.2", "--seed", "3", "--bytes")
SIMULATIONS = {
    **{
        name: ("--algorithm", name, *TREE)
        for name in (*("fedkt", "solo", "pate", "centralised", "fedkt-expert", "fedkt-expert-no-counts", "pate-soft"),)
    },
    "fedavg": ("--algorithm", "fedavg", *NETWORK, "--rounds", "2", "--participation", "0.7"),
    "fedprox": ("--algorithm", "fedprox", *NETWORK, "--mu", "0.5"),
    "scaffold": ("--algorithm", "scaffold", *NETWORK, "--rounds", "2"),
    "feddf": ("--algorithm", "feddf", *NETWORK, "--distil-epochs", "1"),
    "pfnm": ("--algorithm", "pfnm", *NETWORK),
    "fedkt-prox": (*("--algorithm", "fedkt-prox", *NETWORK, "--rounds", "2", "--partitions", "1", "--subsets", "2"),),
    "families": ("--algorithm", "fedkt", "--party-models", "tree,logistic,naive-bayes", "--model", "tree"),
    **{
        f"{level}-{noise}": (*TREE, "--level", level, "--mechanism", noise, *scale, "--queries", "20")
        for level in ("L1", "L2")
        for noise, scale in NOISES.items()
    },
    "L2-expert": (
        *("--algorithm", "fedkt-expert", *TREE, "--level", "L2", "--mechanism", "gaussian", "--sigma", "2"),
        *("--queries", "20"),
    ),
}
"""One small run of every algorithm, of different families together, and of every noise at every private level."""
