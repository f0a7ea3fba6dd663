package evaluate_test

import (
	"math"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/flood"
	"privet/ckks/internal/network"
	"privet/ckks/internal/plan"
	"privet/ckks/internal/testmodel"
)

// scene is a server's model and a client's key and input; the tests play both.
type scene struct {
	model     *evaluate.Model
	secret    *rlwe.SecretKey
	evaluator *ckks.Evaluator
	input     *rlwe.Ciphertext
	zero      *rlwe.Ciphertext
}

func models(t *testing.T, seeds ...uint64) []*evaluate.Model {
	t.Helper()
	var made []*evaluate.Model
	for _, seed := range seeds {
		sample := testmodel.New(2, seed)
		parsed, weights := testmodel.Parse(t, sample.Public, sample.Private)
		full, err := network.Build(parsed, weights)
		if err != nil {
			t.Fatal(err)
		}
		planned, err := plan.New(full)
		if err != nil {
			t.Fatal(err)
		}
		model, err := evaluate.NewModel(full, planned)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, model)
	}
	return made
}

func newScene(t *testing.T, model *evaluate.Model) scene {
	t.Helper()
	x := make([]float64, testmodel.Inputs)
	for i := range x {
		x[i] = float64(i)/testmodel.Inputs - 0.5
	}
	return newSceneOn(t, model, [][]float64{x, x})
}

// newSceneOn has inputs that fill one ciphertext.
func newSceneOn(t *testing.T, model *evaluate.Model, inputs [][]float64) scene {
	t.Helper()
	params := model.Params
	generator := rlwe.NewKeyGenerator(params)
	secret := generator.GenSecretKeyNew()
	var rotations []*rlwe.GaloisKey
	for rotation := range model.Plan.Rotations {
		rotations = append(rotations, generator.GenGaloisKeyNew(params.GaloisElement(rotation), secret))
	}
	keys := rlwe.NewMemEvaluationKeySet(generator.GenRelinearizationKeyNew(secret), rotations...)
	slots := model.Plan.Layouts[0].Fill(inputs, model.Plan.Batch)
	pt := ckks.NewPlaintext(params, params.MaxLevel())
	if err := ckks.NewEncoder(params).Encode(slots[0], pt); err != nil {
		t.Fatal(err)
	}
	encryptor := rlwe.NewEncryptor(params, secret)
	input, err := encryptor.EncryptNew(pt)
	if err != nil {
		t.Fatal(err)
	}
	zero := encryptor.EncryptZeroNew(model.Plan.HidingLevel())
	return scene{model, secret, ckks.NewEvaluator(params, keys), input, zero}
}

func (s scene) run(t *testing.T, model *evaluate.Model, hider evaluate.Hiding) *rlwe.Ciphertext {
	t.Helper()
	outputs, err := model.Run(s.evaluator, evaluate.Helpers{Hiding: hider}, []evaluate.Values{{s.input}}, func(evaluate.Step) {})
	if err != nil {
		t.Fatal(err)
	}
	return outputs[0][0]
}

// nothing is the control: results leave as they were computed.
type nothing struct{}

func (nothing) Randomise(*rlwe.Ciphertext) error  { return nil }
func (nothing) Flood(*rlwe.Ciphertext, int) error { return nil }

// TestAGuessOfTheWeightsCannotBeConfirmed plays a client that has a guess of the weights. It computes what the server
// would for that guess and compares ciphertexts: without hiding the right guess gives the very same bits.
func TestAGuessOfTheWeightsCannotBeConfirmed(t *testing.T) {
	all := models(t, 1, 1, 2)
	server, right, wrong := all[0], all[1], all[2]
	s := newScene(t, server)
	hider, err := evaluate.NewHider(server.Params, server.Plan, s.zero)
	if err != nil {
		t.Fatal(err)
	}
	confirms := func(hiding evaluate.Hiding, guess *evaluate.Model) bool {
		seen, computed := s.run(t, server, hiding), s.run(t, guess, nothing{})
		return seen.Value[1].Equal(&computed.Value[1])
	}
	if !confirms(nothing{}, right) || confirms(nothing{}, wrong) {
		t.Error("the attack does not work on the control, so it shows nothing")
	}
	if confirms(hider, right) {
		t.Error("a result tells which weights it was computed with")
	}
}

// TestHidingChangesAllBitsAndHardlyTheValue compares two results of one computation.
func TestHidingChangesAllBitsAndHardlyTheValue(t *testing.T) {
	server := models(t, 3)[0]
	s := newScene(t, server)
	hider, err := evaluate.NewHider(server.Params, server.Plan, s.zero)
	if err != nil {
		t.Fatal(err)
	}
	decrypt := func(ct *rlwe.Ciphertext) []float64 {
		slots := make([]float64, server.Params.MaxSlots())
		plaintext := rlwe.NewDecryptor(server.Params, s.secret).DecryptNew(ct)
		last := len(server.Plan.Layouts) - 1
		flood.Keep(server.Params.RingQ().AtLevel(ct.Level()), plaintext.Value, server.Plan.Period(last))
		if err := ckks.NewEncoder(server.Params).Decode(plaintext, slots); err != nil {
			t.Fatal(err)
		}
		return slots
	}
	first, second, bare := s.run(t, server, hider), s.run(t, server, hider), s.run(t, server, nothing{})
	equal := 0
	for i, coefficient := range first.Value[1].Coeffs[0] {
		if coefficient == second.Value[1].Coeffs[0][i] {
			equal++
		}
	}
	if equal > 2 {
		t.Errorf("%d coefficients of two results are equal", equal)
	}
	a, b, c := decrypt(first), decrypt(second), decrypt(bare)
	largest, moved := 0.0, 0.0
	for i := range a {
		largest = max(largest, math.Abs(a[i]-c[i]))
		moved = max(moved, math.Abs(a[i]-b[i]))
	}
	if largest > 1.0/(1<<10) || moved < 1.0/(1<<18) {
		t.Errorf("hiding moved values by %v, and two results differ by %v", largest, moved)
	}
}
