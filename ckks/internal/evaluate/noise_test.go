package evaluate_test

import (
	"math"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/codec"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/flood"
	"privet/ckks/internal/layers"
	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
	"privet/ckks/internal/plan"
	"privet/ckks/internal/program"
	"privet/ckks/internal/testmodel"
	"privet/ckks/internal/wire"
)

// shared plans a program whose results are flooded, and gives its network with weights.
func shared(t *testing.T, sample testmodel.Program, bare bool) (*program.Program, *network.Network, *plan.Plan) {
	t.Helper()
	parsed, weights := testmodel.Parse(t, sample.Public, sample.Private)
	full, err := network.Build(parsed, weights)
	if err != nil {
		t.Fatal(err)
	}
	if bare {
		full = full.WithBareSquares()
	}
	planned, err := plan.Shared(full, 1, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return parsed, full, planned
}

// measure is the norm of the noise that a bare result has, over the coefficients that are revealed.
func (s scene) measure(t *testing.T, sample testmodel.Program) float64 {
	t.Helper()
	p, params := s.model.Plan, s.model.Params
	ct := s.run(t, s.model, nothing{})
	ct.Scale = params.DefaultScale()
	last := len(p.Layouts) - 1
	pt := rlwe.NewDecryptor(params, s.secret).DecryptNew(ct)
	ringQ := params.RingQ().AtLevel(pt.Level())
	flood.Keep(ringQ, pt.Value, p.Period(last))
	slots := make([]float64, params.MaxSlots())
	if err := codec.New(params).Decode(pt, slots); err != nil {
		t.Fatal(err)
	}
	x := make([]float64, testmodel.Inputs)
	for i := range x {
		x[i] = float64(i)/testmodel.Inputs - 0.5
	}
	exact := sample.Run(x)
	expected := p.Layouts[last].Fill([][]float64{exact, exact}, p.Batch)[0]
	total := 0.0
	for i := range p.Period(last) {
		total += (slots[i] - expected[i]) * (slots[i] - expected[i])
	}
	// The mean square of a slot is the norm's square over all coefficients, up to those that count twice.
	return math.Sqrt(total/float64(p.Period(last))) * p.Set.Scale()
}

// encrypting makes an encrypted model under the scene's own key.
type encrypting struct {
	params    ckks.Parameters
	plan      *plan.Plan
	encryptor *rlwe.Encryptor
}

func (e encrypting) Linear(t *packing.Transform, matrix *network.Matrix, level int, scale rlwe.Scale) (*layers.Linear, error) {
	var made []*rlwe.Ciphertext
	encrypt := func(pt *rlwe.Plaintext) ([]byte, error) {
		ct, err := e.encryptor.EncryptNew(pt)
		if err != nil {
			return nil, err
		}
		return wire.AppendResult(nil, e.params, ct)
	}
	err := layers.EncryptLinear(e.params, t, matrix, e.plan.Batch, level, scale, encrypt, func(data []byte) error {
		ct, err := wire.ReadResult(data, e.params, level)
		made = append(made, ct)
		return err
	})
	if err != nil {
		return nil, err
	}
	return layers.TakeLinear(e.params, t, e.plan.Batch, level, scale, func() (*rlwe.Ciphertext, error) {
		next := made[0]
		made = made[1:]
		return next, nil
	})
}

func (e encrypting) Evaluates() bool { return true }

func (e encrypting) Series(node *network.Node) ([]float64, error) { return node.Coefficients, nil }

func (e encrypting) Bias(layout packing.Layout, bias []float64, level int) ([]rlwe.Operand, error) {
	encoded, err := evaluate.EncodeBias(e.params, layout, bias, e.plan.Batch, level)
	var made []rlwe.Operand
	for _, pt := range encoded {
		ct, err := e.encryptor.EncryptNew(pt)
		if err != nil {
			return nil, err
		}
		made = append(made, ct)
	}
	return made, err
}

// TestNoiseStaysWithinWhatFloodingIsPlannedFor measures real noise of both kinds of models beside the tracked bound.
func TestNoiseStaysWithinWhatFloodingIsPlannedFor(t *testing.T) {
	for seed := uint64(1); seed <= 4; seed++ {
		for _, encrypted := range []bool{false, true} {
			sample := testmodel.New(2, seed)
			parsed, full, planned := shared(t, sample, encrypted)
			model, err := evaluate.NewModel(full, planned)
			if err != nil {
				t.Fatal(err)
			}
			s := newScene(t, model)
			if encrypted {
				maker := encrypting{model.Params, planned, rlwe.NewEncryptor(model.Params, s.secret)}
				if s.model, err = evaluate.Assemble(full, planned, model.Params, maker); err != nil {
					t.Fatal(err)
				}
			}
			scene := flood.Scene{Holders: 1, Model: encrypted, Magnitudes: parsed.Magnitudes()}
			limit, measured := flood.Norms(full, planned, scene)[len(full.Nodes)-1], s.measure(t, sample)
			t.Logf("seed %d, encrypted %v: 2^%.1f of 2^%.1f", seed, encrypted, math.Log2(measured), math.Log2(limit))
			if measured > limit || measured < limit/(1<<10) {
				t.Errorf("seed %d, encrypted %v: noise of %g where %g is tracked", seed, encrypted, measured, limit)
			}
		}
	}
}
