package bootstrap_test

import (
	"math"
	"testing"
	"time"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/bootstrap"
	"privet/ckks/internal/params"
	"privet/ckks/internal/secret"
	"privet/ckks/internal/wire"
)

func TestACircuitGivesLevelsBack(t *testing.T) {
	if testing.Short() {
		t.Skip("the circuit takes half a minute; tests/e2e runs a model through it")
	}
	const logSlots, depth = 3, 2
	set, ok := params.ChooseCentral(depth)
	if !ok {
		t.Fatal("no room for the circuit")
	}
	residual, err := set.Build()
	if err != nil {
		t.Fatal(err)
	}
	p, err := bootstrap.New(set, residual, logSlots)
	if err != nil {
		t.Fatal(err)
	}
	key, err := secret.New(residual)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	var sent [][]byte
	if err := key.Bootstrapping(p, func(data []byte) error { sent = append(sent, data); return nil }); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d keys in %v", len(sent), time.Since(start))
	start = time.Now()
	refresher, err := bootstrap.Receive(p, func(int) ([]byte, error) {
		data := sent[0]
		sent = sent[1:]
		return data, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("circuit in %v", time.Since(start))
	var values []*rlwe.Ciphertext
	for k := range 2 {
		data, err := key.Encrypt(ramp(residual, k, logSlots))
		if err != nil {
			t.Fatal(err)
		}
		ct, err := wire.ReadSeeded(data, residual, residual.MaxLevel())
		if err != nil {
			t.Fatal(err)
		}
		ct.Resize(1, bootstrap.InputLevel)
		values = append(values, ct)
	}
	start = time.Now()
	fresh, err := refresher.Refresh(0, values, depth)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("refresh in %v", time.Since(start))
	for k, ct := range fresh {
		if ct.Level() != depth {
			t.Errorf("back at level %d", ct.Level())
		}
		got, err := key.Decrypt(ct, residual.MaxSlots())
		if err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for i, expected := range ramp(residual, k, logSlots) {
			worst = max(worst, math.Abs(got[i]-expected))
		}
		if !(worst < 1.0/(1<<14)) {
			t.Errorf("ciphertext %d: off by %v", k, worst)
		}
		t.Logf("off by %.2g", worst)
	}
}

// ramp are values that repeat every 2^logSlots slots.
func ramp(params ckks.Parameters, k, logSlots int) []float64 {
	values := make([]float64, params.MaxSlots())
	for i := range values {
		values[i] = math.Sin(float64(k + i%(1<<logSlots)))
	}
	return values
}
