package bootstrap_test

import (
	"strings"
	"testing"

	"privet/ckks/internal/bootstrap"
	"privet/ckks/internal/params"
)

// TestEveryKeyIsSecureInTheDimensionOfItsSecret looks at the keys of each depth that central bootstrapping is planned for.
// The key back to the model's ring is a sample under the model's secret, of half the circuit's degree. With all of the
// circuit's special primes, which the control gives it, it is beyond the table at most depths.
func TestEveryKeyIsSecureInTheDimensionOfItsSecret(t *testing.T) {
	planned, insecure := 0, 0
	for depth := 5; depth <= 14; depth++ {
		set, ok := params.ChooseCentral(depth)
		if !ok {
			continue
		}
		residual, err := set.Build()
		if err != nil {
			t.Fatal(err)
		}
		p, err := bootstrap.New(set, residual, 3)
		if err != nil {
			t.Fatalf("depth %d: %v", depth, err)
		}
		planned++
		circuit, _, _ := p.Rings()
		for i, key := range p.Published() {
			if err := params.CheckPublished([]params.Published{key}); err != nil {
				t.Errorf("depth %d: %v", depth, err)
			}
			if p.Keys()[i].Kind != bootstrap.ToReal {
				continue
			}
			if key.LogN != set.LogN {
				t.Errorf("depth %d: the model's secret has dimension 2^%d, and the key's is said to have 2^%d", depth, set.LogN, key.LogN)
			}
			key.LogP = circuit.LogP()
			if err := params.CheckPublished([]params.Published{key}); err != nil {
				insecure++
				if !strings.Contains(err.Error(), "back to the model's ring: a modulus of") {
					t.Error(err)
				}
			}
		}
	}
	if planned < 10 || insecure < 8 {
		t.Errorf("%d depths, and the control is insecure at %d", planned, insecure)
	}
}

// TestASparseSecretHasLessRoom checks both sides of the sparse secret's limit.
func TestASparseSecretHasLessRoom(t *testing.T) {
	key := params.Published{Name: "sparse", LogN: 16, Weight: 32, LogQ: 60, LogP: 61}
	if err := params.CheckPublished([]params.Published{key}); err != nil {
		t.Error(err)
	}
	wider, unknown := key, key
	wider.LogQ++
	unknown.Weight++
	for _, wrong := range []params.Published{wider, unknown} {
		if params.CheckPublished([]params.Published{wrong}) == nil {
			t.Errorf("%+v was allowed", wrong)
		}
	}
}
