"""Server optimizers, one file each: the step of the global model from the aggregated update.

They see nothing but what was received, so that they are post-processing and cost no privacy.
"""

from wirelessfl.learning.server_optimizers.adagrad import ServerAdaGrad
from wirelessfl.learning.server_optimizers.adam import ServerAdam
from wirelessfl.learning.server_optimizers.base import ServerOptimizer
from wirelessfl.learning.server_optimizers.sgd import ServerSgd
from wirelessfl.learning.server_optimizers.yogi import ServerYogi

__all__ = ["ServerAdaGrad", "ServerAdam", "ServerOptimizer", "ServerSgd", "ServerYogi"]
