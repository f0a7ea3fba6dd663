package plan

import (
	"math"
	"slices"

	"privet/ckks/internal/params"
)

// Security says what an attacker of a plan's keys and of its flooded decryptions has: the input of docs/reference/security-parameters.md
// and of a budget over all suites.
type Security struct {
	Keys []SecurityKey `json:"keys"`
	// Flooding is nil where decryptions are not flooded statistically.
	Flooding *SecurityFlooding `json:"flooding"`
}

// SecurityKey is one kind of RLWE samples: see params.Published. Sizes are in bits.
type SecurityKey struct {
	Name   string `json:"name"`
	LogN   int    `json:"log_n"`
	Secret string `json:"secret"`
	// Weight is the Hamming weight of a sparse secret, 0 of a uniform ternary one.
	Weight int     `json:"weight"`
	LogQ   float64 `json:"log_q"`
	LogP   float64 `json:"log_p"`
	Limit  float64 `json:"limit_log_qp"`
}

// SecurityFlooding is by how many bits flooding protects at least: everything that is decrypted under a key for somebody
// else tells more than the results with an advantage of at most 2^-BitsPerKey. An owner of weights computes what a model
// really has, and refuses less than this. Inputs says for which inputs that holds.
type SecurityFlooding struct {
	Inputs        string  `json:"inputs"`
	BitsPerResult float64 `json:"bits_per_result"`
	ResultsPerKey int     `json:"results_per_key"`
	BitsPerKey    float64 `json:"bits_per_key"`
}

// Security is that of the plan.
func (p *Plan) Security() Security {
	made := Security{}
	for _, key := range p.Published() {
		line := SecurityKey{
			Name: key.Name, LogN: key.LogN, Secret: key.Secret(), Weight: key.Weight,
			LogQ: tenths(key.LogQ), LogP: tenths(key.LogP), Limit: key.Limit(),
		}
		if !slices.Contains(made.Keys, line) {
			made.Keys = append(made.Keys, line)
		}
	}
	if p.Holders > 0 {
		// Divergences add up over results, and advantages are as their roots.
		each := params.StatisticalBits + math.Log2(float64(p.Budget))/2
		made.Flooding = &SecurityFlooding{
			Inputs: "those that keep values within the intervals that calibration measured", BitsPerResult: tenths(each), ResultsPerKey: p.Budget, BitsPerKey: params.StatisticalBits,
		}
	}
	return made
}

func tenths(bits float64) float64 { return math.Round(10*bits) / 10 }
