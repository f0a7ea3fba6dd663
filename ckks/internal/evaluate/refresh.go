package evaluate

import (
	"fmt"
	"time"

	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

// Refresher gives ciphertexts levels back where the plan says so.
type Refresher interface {
	// Refresh gives the same values of a node, or of its argument, at a level; it takes them at the plan's floor.
	Refresh(node int, values Values, level int) (Values, error)
}

// refreshed are values after their refresh to a level, which keeps their scale.
func (m *Model) refreshed(eval *ckks.Evaluator, refresher Refresher, index int, values Values, level int, observe func(Step)) (Values, error) {
	start, name := time.Now(), m.network.Nodes[index].Name
	if refresher == nil {
		return nil, fmt.Errorf("layer %s needs a refresh, and this scenario has none", name)
	}
	made, err := refresher.Refresh(index, lowered(eval, values, m.Plan.Floor), level)
	if err != nil {
		return nil, err
	}
	for i := range made {
		made[i].Scale = values[i].Scale
	}
	observe(Step{name, "refresh", time.Since(start).Seconds()})
	return made, nil
}
