package session_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/params"
	"privet/ckks/internal/session"
	"privet/ckks/internal/testmodel"
)

// rightOrRefused runs a model on inputs that are larger and larger. Each result must be the model's, or an error that says that it has
// wrapped around; it gives how often it was which.
func rightOrRefused(t *testing.T, factors []float64, size int, infer func([][]float64) ([][][]float64, error), run func([]float64) []float64) (right, refused int) {
	t.Helper()
	for _, factor := range factors {
		inputs, expected, largest := make([][]float64, testmodel.Batch), make([][]float64, testmodel.Batch), 1.0
		for i := range inputs {
			inputs[i] = make([]float64, size)
			for k := range inputs[i] {
				inputs[i][k] = factor * math.Sin(float64(i+3*k))
			}
			expected[i] = run(inputs[i])
			for _, value := range expected[i] {
				largest = max(largest, math.Abs(value))
			}
		}
		outputs, err := infer(inputs)
		var known *channel.Error
		switch {
		case errors.As(err, &known) && known.Family == channel.FamilyInput:
			refused++
			if largest <= params.MostResult {
				t.Errorf("inputs up to %.3g: results up to %.3g were refused: %v", factor, largest, err)
			}
			continue
		case err != nil:
			t.Fatal(err)
		}
		right++
		for i := range expected {
			for k, value := range expected[i] {
				if off := math.Abs(outputs[0][i][k] - value); !(off < 0.01*largest) {
					t.Errorf("inputs up to %.3g: output %d of sample %d is %v, not %v", factor, k, i, outputs[0][i][k], value)
				}
			}
		}
	}
	t.Logf("%d right, %d refused", right, refused)
	return right, refused
}

// TestAResultThatWrapsIsAnError has the client of scenario 1 decrypt results that do and do not fit, and goes on with the same session.
func TestAResultThatWrapsIsAnError(t *testing.T) {
	sample := testmodel.New(7, 7)
	sample.Public = bytes.Replace(sample.Public, []byte(`"magnitude":4.0`), []byte(`"magnitude":64.0`), 1)
	address, keys, _ := serve(t, sample)
	client, err := session.Open(connect(t, address, keys), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Prepare(); err != nil {
		t.Fatal(err)
	}
	infer := func(inputs [][]float64) ([][][]float64, error) {
		outputs, _, err := client.Infer([][][]float64{inputs})
		return outputs, err
	}
	right, refused := rightOrRefused(t, []float64{1, 4, 8, 11, 16, 22, 32, 64}, testmodel.Inputs, infer, sample.Run)
	if right < 2 || refused < 2 {
		t.Errorf("%d results were right, %d refused: the inputs show nothing", right, refused)
	}
}

// TestAValueThatWrapsAtARefreshIsAnError has values of an encrypted model outgrow what the owner of the key refreshes.
func TestAValueThatWrapsAtARefreshIsAnError(t *testing.T) {
	sample := deep()
	public := bytes.Replace(sample.Public, []byte(`"magnitude":1.0`), []byte(`"magnitude":4096.0`), 1)
	evaluator, _ := openEvaluator(t, public, sample.Private)
	if evaluator.Plan.Refreshes() == 0 {
		t.Fatal("nothing is refreshed")
	}
	infer := func(inputs [][]float64) ([][][]float64, error) {
		outputs, _, err := evaluator.Infer([][][]float64{inputs}, ignore)
		return outputs, err
	}
	right, refused := rightOrRefused(t, []float64{1, 8, 32, 256, 4096}, testmodel.Hidden, infer, sample.Run)
	if right < 1 || refused < 2 {
		t.Errorf("%d results were right, %d refused: the inputs show nothing", right, refused)
	}
}
