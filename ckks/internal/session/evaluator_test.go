package session_test

import (
	"math"
	"strings"
	"testing"

	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/params"
	"privet/ckks/internal/session"
	"privet/ckks/internal/testmodel"
)

func ignore(evaluate.Step) {}

func openEvaluator(t *testing.T, public, private []byte) (*session.Evaluator, chan session.Event) {
	t.Helper()
	return openEvaluatorWithin(t, public, private, 0)
}

func openEvaluatorWithin(t *testing.T, public, private []byte, limit int64) (*session.Evaluator, chan session.Event) {
	t.Helper()
	address, keys, events := serveOn(t, public, private, session.Terms{Scenario: session.EncryptedModel})
	evaluator, err := session.OpenEvaluator(connect(t, address, keys), "", limit)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := evaluator.Prepare(); err != nil {
		t.Fatal(err)
	}
	return evaluator, events
}

func TestPredictionsOfAnEncryptedModelAreThoseOfTheModel(t *testing.T) {
	for _, degree := range []int{1, 2, 7} {
		sample := testmodel.New(degree, uint64(degree))
		evaluator, events := openEvaluator(t, sample.Public, sample.Private)
		for round := range 2 {
			inputs := samples(uint64(10*degree + round))
			outputs, cost, err := evaluator.Infer([][][]float64{inputs}, ignore)
			if err != nil {
				t.Fatal(err)
			}
			for i, x := range inputs {
				for k, expected := range sample.Run(x) {
					if math.Abs(outputs[0][i][k]-expected) > 2e-3 {
						t.Errorf("degree %d, sample %d, output %d: %v, not %v", degree, i, k, outputs[0][i][k], expected)
					}
				}
			}
			if most := evaluator.Plan.Summary().OnlineBytesServer; cost.BytesReceived > most+1000 {
				t.Errorf("%d bytes came back, %d planned", cost.BytesReceived, most)
			}
		}
		if err := evaluator.Close(); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"prepared", "inferred", "inferred"} {
			if event := <-events; event.Kind != kind {
				t.Errorf("the server notified %q (%v), not %q", event.Kind, event.Err, kind)
			}
		}
	}
}

func TestTheBudgetOfDecryptionsEndsASession(t *testing.T) {
	sample := testmodel.New(2, 1)
	evaluator, _ := openEvaluator(t, sample.Public, sample.Private)
	for range params.Decryptions {
		if _, _, err := evaluator.Infer([][][]float64{samples(1)}, ignore); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := evaluator.Infer([][][]float64{samples(1)}, ignore)
	if err == nil || !strings.Contains(err.Error(), "budget of decryptions") {
		t.Errorf("one inference more than the budget: %v", err)
	}
}

func TestAnotherScenarioIsRefusedByName(t *testing.T) {
	sample := testmodel.New(2, 1)
	address, keys, _ := serve(t, sample)
	if _, err := session.OpenEvaluator(connect(t, address, keys), "", 0); err == nil || !strings.Contains(err.Error(), "encrypted-data") {
		t.Errorf("%v", err)
	}
	address, keys, _ = serveOn(t, sample.Public, sample.Private, session.Terms{Scenario: session.EncryptedModel})
	if _, err := session.Open(connect(t, address, keys), ""); err == nil || !strings.Contains(err.Error(), "encrypted-model") {
		t.Errorf("%v", err)
	}
}

func TestAnEncryptedModelThatDoesNotFitIsRefusedWithTheFigure(t *testing.T) {
	sample := testmodel.New(2, 1)
	address, keys, _ := serveOn(t, sample.Public, sample.Private, session.Terms{Scenario: session.EncryptedModel})
	_, err := session.OpenEvaluator(connect(t, address, keys), "", 1<<20)
	if err == nil || !strings.Contains(err.Error(), "MB, more than the limit of 1 MB") {
		t.Errorf("%v", err)
	}
}

func TestStatisticalFloodingLeavesResultsIntact(t *testing.T) {
	for _, degree := range []int{2, 7} {
		sample := testmodel.New(degree, 4)
		address, keys, _ := serveOn(t, sample.Public, sample.Private, session.Terms{Scenario: session.EncryptedData, Statistical: true})
		client, err := session.Open(connect(t, address, keys), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Prepare(); err != nil {
			t.Fatal(err)
		}
		inputs := samples(3)
		outputs, _, err := client.Infer([][][]float64{inputs})
		if err != nil {
			t.Fatal(err)
		}
		moved := 0.0
		for i, x := range inputs {
			for k, expected := range sample.Run(x) {
				moved = max(moved, math.Abs(outputs[0][i][k]-expected))
			}
		}
		if moved > 2e-3 || moved < 1e-5 {
			t.Errorf("degree %d: flooding moved results by %v", degree, moved)
		}
	}
}
