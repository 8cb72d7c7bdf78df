"""What it takes to find the noise of a small budget: seconds and little memory, whatever the plan."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource
resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
from sfumato.privacy.accounting import account
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.calibration import calibrate
from sfumato.privacy.plan import Plan, Stage
stages = [Stage(name="sums", noise_multiplier=5.0), {sampled}]
plan = calibrate(Plan(stages), PrivacyBudget({epsilon}, 1e-6))
epsilon = account(plan, 1e-6).epsilon
assert 0.98 * {epsilon} <= epsilon <= {epsilon}, epsilon
print(resource.getrusage(resource.RUSAGE_SELF).ru_utime)
"""
SAMPLED = {
    "unsampled": 'Stage(name="more", noise_multiplier=1.0, count=50)',
    "many steps": 'Stage(name="sgd", noise_multiplier=1.0, sampling_probability=0.001, count=30_000)',
    "large batches": 'Stage(name="sgd", noise_multiplier=1.0, sampling_probability=0.2, count=200)',
}


@pytest.mark.slow
@pytest.mark.audit
@pytest.mark.parametrize("epsilon", [0.01, 1.0])
@pytest.mark.parametrize("sampled", SAMPLED)
def test_small_budgets_take_seconds_and_little_memory(sampled, epsilon):
    program = PROGRAM.format(sampled=SAMPLED[sampled], epsilon=epsilon)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-500:]
    assert float(ended.stdout) < 60
