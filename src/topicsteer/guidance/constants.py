"""The tuned numbers of the guide, in one place. `experiments/constants` halves and doubles each."""

# --- features ---

# Shares of meaning in the features, for the closed-form choice.
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9)
# The smallest share whose log loss exceeds the least one by at most this share of it is chosen.
TIE = 0.01
# With few labels the share is LENGTH / (LENGTH + terms per document): short texts need meaning more than articles.
LENGTH = 40.0

# --- regressions ---

# Ridges, and factors from ridge scores to log odds; the third of each with few labels.
RIDGES = (0.3, 1.0, 3.0, 10.0)
SHARPNESSES = (4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
# Weight of a name relative to a labelled document in the ridge regression.
NAME = 3.0
# Inverse ridge of the softmax regression.
SOFTMAX = 10.0

# --- rounds of pseudo-labels ---

# Weights of naive Bayes, of the cosine with the centroid and of the log share before hidden labels move them.
NAIVE_BAYES, COSINE, SHARE = 0.5, 5.0, 0.5
# Smoothing of the frequencies of terms.
SMOOTHING = 0.03
# Rounds of pseudo-labels with a learnt mix, and with the start mix.
ROUNDS, NAME_ROUNDS = 2, 7
# With the start mix, rounds end when the effective number of classes falls below this share of that of the first.
KEPT_SPREAD = 0.9
# Folds in which labels are hidden, and the least number of labelled documents to learn from them.
FOLDS, MIN_LABELS = 3, 15

# --- open world ---

# The world is open if at least this share of the documents seems to have no known topic.
OPEN_SHARE = 0.05
# Weight of a labelled document relative to an unlabelled one, and strength of the ridge that looks for them.
LABELLED_WEIGHT, OPEN_RIDGE = 20.0, 100.0
# Fewer labels than this do not show how much evidence is normal, nor the share of documents without a known topic.
FEW_LABELS = 10
# Groups per known topic, for equally large topics.
GROUPS = 2.0
# In small corpora there is at most one group per this many documents outside.
DOCUMENTS_PER_GROUP = 30
# Share of meaning where groups of documents are looked for.
GROUP_SHARE = 0.75
# Spherical k-means: sharpness, starts and steps. Then rounds of naive Bayes and centroids.
KAPPA, STARTS, GROUP_STEPS, GROUP_ROUNDS = 20.0, 18, 10, 2
# Labels of a group: this many times the labels of the median known topic, and at least some.
CORE, LEAST_CORE = 1.5, 5
