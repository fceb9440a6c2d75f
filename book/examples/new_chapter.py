# %% parameters
profile = "digits"
seed = 7
num_chains = 100

# %%
from boltzmann_companion.chapter import open_chapter
from paperlib.annealing import base_rate_path, uniform_betas
from paperlib.estimators import ais, exact_log_z
from paperlib.numerics import seeded_generator

chapter = open_chapter("16-how-many-steps", globals())
model_id = {"digits": "digits-cd1-16", "paper": "mnist-cd1-20"}[profile]
model = chapter.size.model(model_id)
path = base_rate_path(model, chapter.size.images().train)

# %%
exact = exact_log_z(model)
rows = []
for num_steps in (10, 100, 1_000):
    estimate = ais(
        path, uniform_betas(num_steps), num_chains, seeded_generator(seed)
    )
    rows.append(
        {"model": f"K = {num_steps:,}", "log_z": estimate.log_z, "exact": exact}
    )

# %%
table = chapter.record("how-many-steps", rows, models={model_id: model})
table

# %%
chapter.check(
    "with 1,000 steps AIS is within a nat", abs(rows[-1]["log_z"] - exact) < 1
)

# %%
chapter.compare()
