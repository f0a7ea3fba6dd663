package cohort

import (
	"fmt"
	"testing"
)

// TestAModelWithoutALevelToRefreshAtHasASummary describes a single dense layer, lightly and statistically flooded.
func TestAModelWithoutALevelToRefreshAtHasASummary(t *testing.T) {
	public := fmt.Appendf(nil, `{"format":"privet-program","version":1,"model":"linear","ring_bits":50,"scale_bits":12,
		"weight_bits":16,"weights_commitment":"%064d","inputs":[{"name":"x","value":0,"magnitude":1.0}],
		"outputs":[{"name":"y","value":1,"client":null}],"values":[{"shape":[2,9],"scale":12},{"shape":[2,4],"scale":24}],
		"operations":[{"op":"dense","name":"layer","inputs":[0],"output":1,"weight":"w","weight_shape":[9,4],"bias":null}],"batch":2}`, 0)
	for _, statistical := range []bool{false, true} {
		setup, err := NewSetup(public, 2, statistical)
		if err != nil {
			t.Fatal(err)
		}
		if made := setup.Summary(); setup.Plan.Floor <= setup.Plan.Set.Depth || made.RefreshBytes != 0 || made.CoordinatorBytesOnline <= 0 {
			t.Errorf("statistical %v: refreshed from level %d of %d, %d bytes for that and %d online",
				statistical, setup.Plan.Floor, setup.Plan.Set.Depth, made.RefreshBytes, made.CoordinatorBytesOnline)
		}
	}
}
