package session_test

import (
	"math"
	"strings"
	"testing"

	"privet/ckks/internal/session"
	"privet/ckks/internal/testmodel"
	"privet/ckks/internal/wire"
)

// deep has more levels than any ring has room for under statistical noise.
func deep() testmodel.Deep { return testmodel.NewDeep(8, 7, 5) }

func connectDeep(t *testing.T) (*session.Evaluator, testmodel.Deep, chan session.Event) {
	t.Helper()
	sample := deep()
	evaluator, events := openEvaluator(t, sample.Public, sample.Private)
	if evaluator.Plan.Refreshes() == 0 {
		t.Fatal("nothing is refreshed")
	}
	return evaluator, sample, events
}

func TestADeepEncryptedModelIsRefreshedByItsOwner(t *testing.T) {
	evaluator, sample, events := connectDeep(t)
	for range 2 {
		cost := predictDeep(t, evaluator, sample)
		summary, points := evaluator.Plan.Summary(), evaluator.Plan.Points()
		for who, bytes := range map[string][2]int64{
			"client": {cost.BytesSent, summary.OnlineBytesClient}, "server": {cost.BytesReceived, summary.OnlineBytesServer},
		} {
			if bytes[0] < bytes[1] || bytes[0] > bytes[1]+int64(300*(2+len(points))) {
				t.Errorf("the %s sent %d bytes, %d planned", who, bytes[0], bytes[1])
			}
		}
		// A run begins, each point takes one round, results are asked for and come.
		if most := len(points) + 3; cost.Rounds > most {
			t.Errorf("%d rounds for %d refreshes", cost.Rounds, len(points))
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

// predictDeep compares an inference with the model in the clear.
func predictDeep(t *testing.T, evaluator *session.Evaluator, sample testmodel.Deep) session.Cost {
	t.Helper()
	inputs := make([][]float64, testmodel.Batch)
	for i := range inputs {
		inputs[i] = make([]float64, testmodel.Hidden)
		for k := range inputs[i] {
			inputs[i][k] = math.Sin(float64(i + 3*k))
		}
	}
	outputs, cost, err := evaluator.Infer([][][]float64{inputs}, ignore)
	if err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for i, x := range inputs {
		for k, expected := range sample.Run(x) {
			worst = max(worst, math.Abs(outputs[0][i][k]-expected))
		}
	}
	if !(worst < 1.0/(1<<9)) {
		t.Errorf("off by %v", worst)
	}
	return cost
}

// TestAClientWithLittleMemoryGetsLayerAfterLayer runs a model that is refreshed, twice, and one that is not.
func TestAClientWithLittleMemoryGetsLayerAfterLayer(t *testing.T) {
	sample := deep()
	made, err := session.Terms{Scenario: session.EncryptedModel}.Plan(sample.Public)
	if err != nil {
		t.Fatal(err)
	}
	evaluator, _ := openEvaluatorWithin(t, sample.Public, sample.Private, made.CohortMemory()-1)
	if evaluator.Needs() >= made.CohortMemory() {
		t.Errorf("%d bytes instead of %d", evaluator.Needs(), made.CohortMemory())
	}
	for range 2 {
		if cost := predictDeep(t, evaluator, sample); cost.BytesReceived < made.Summary().OfflineBytesServer/2 {
			t.Errorf("%d bytes came with a run: the model is not among them", cost.BytesReceived)
		}
	}
	flat := testmodel.New(2, 1)
	if made, err = (session.Terms{Scenario: session.EncryptedModel}).Plan(flat.Public); err != nil {
		t.Fatal(err)
	}
	evaluator, _ = openEvaluatorWithin(t, flat.Public, flat.Private, made.CohortMemory()-1)
	inputs := samples(1)
	outputs, _, err := evaluator.Infer([][][]float64{inputs}, ignore)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range inputs {
		for k, expected := range flat.Run(x) {
			if math.Abs(outputs[0][i][k]-expected) > 2e-3 {
				t.Errorf("sample %d, output %d: %v, not %v", i, k, outputs[0][i][k], expected)
			}
		}
	}
}

// TestRefreshesOutOfTurnAreRefusedByName has clients ask for what does not come next.
func TestRefreshesOutOfTurnAreRefusedByName(t *testing.T) {
	for name, play := range map[string]struct {
		refreshes func(points int) int
		run       bool
		last      string
		refusal   string
	}{
		"more than the plan has": {func(points int) int { return points }, true, "refresh", "the plan has no other"},
		"results too early":      {func(points int) int { return points - 1 }, true, "decrypt", "results come after"},
		"no run":                 {func(int) int { return 0 }, false, "refresh", "a run of the model comes before"},
		"results without a run":  {func(int) int { return 0 }, false, "decrypt", "a run of the model comes before"},
	} {
		evaluator, _, _ := connectDeep(t)
		if play.run {
			if err := evaluator.Agree("run"); err != nil {
				t.Fatal(err)
			}
		}
		for i := range play.refreshes(len(evaluator.Plan.Points())) {
			if err := evaluator.RefreshZeros(evaluator.Plan.Points()[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := evaluator.Agree(play.last); err == nil || !strings.Contains(err.Error(), play.refusal) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRunsThatBreakOffAreCounted has a client begin run after run and no more than the first refresh of each, which may be the one that
// tells most. The control: as a number of refreshes, of whatever point, the budget would last for more runs.
func TestRunsThatBreakOffAreCounted(t *testing.T) {
	evaluator, _, _ := connectDeep(t)
	p := evaluator.Plan
	first := p.Points()[0]
	if counted := p.Runs() * p.Refreshes() / p.Layouts[first.Node].Ciphertexts; counted <= p.Runs() {
		t.Fatalf("%d refreshes of the first point in %d runs", counted, p.Runs())
	}
	for run := range p.Runs() {
		if err := evaluator.Agree("run"); err != nil {
			t.Fatalf("run %d of %d: %v", run, p.Runs(), err)
		}
		if run%16 == 0 {
			if err := evaluator.RefreshZeros(first); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := evaluator.Agree("run"); err == nil || !strings.Contains(err.Error(), "budget") {
		t.Errorf("beyond the budget: %v", err)
	}
}

// TestAValueOfAnotherFormIsRefused sends too few bytes, and coefficients beyond their primes.
func TestAValueOfAnotherFormIsRefused(t *testing.T) {
	for name, form := range map[string]func(size int) []byte{
		"where": func(int) []byte { return []byte("nonsense") },
		"not below its prime": func(size int) []byte {
			data := make([]byte, size)
			for i := range data {
				data[i] = 255
			}
			return data
		},
	} {
		evaluator, _, events := connectDeep(t)
		if err := evaluator.Agree("run"); err != nil {
			t.Fatal(err)
		}
		point := evaluator.Plan.Points()[0]
		params, err := evaluator.Plan.Set.Build()
		if err != nil {
			t.Fatal(err)
		}
		size := wire.MaskedBytes(params, evaluator.Plan.Floor, evaluator.Plan.Period(point.Node))
		if err := evaluator.SendRefresh(form(size)); err == nil {
			t.Errorf("%s: a refresh was answered", name)
		}
		<-events // prepared
		if event := <-events; event.Kind != "failed" || !strings.Contains(event.Err.Error(), name) {
			t.Errorf("%s: the server notified %q (%v)", name, event.Kind, event.Err)
		}
	}
}
