package plan

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestASummaryListsEveryKindOfKey looks at the plans of the three scenarios.
func TestASummaryListsEveryKindOfKey(t *testing.T) {
	known := *deep(t, 3, 7)
	known.Known = true
	for name, c := range map[string]struct {
		plan     func() (*Plan, error)
		keys     []string
		flooding bool
	}{
		"data":    {func() (*Plan, error) { return New(deep(t, 3, 7)) }, []string{"encryption of zero", "relinearisation key", "rotation keys"}, false},
		"central": {func() (*Plan, error) { return New(deep(t, 24, 7)) }, []string{"key back to the model's ring", "key to the sparse secret"}, false},
		"model":   {func() (*Plan, error) { return Shared(&known, 1, 64, 1) }, []string{"randomised results"}, true},
		"cohort":  {func() (*Plan, error) { return Shared(deep(t, 4, 7), 3, 0, 3) }, []string{"both rounds", "public key of the cohort", "shares of refreshes"}, true},
	} {
		made, err := c.plan()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, err := json.Marshal(made.Summary().Security)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range c.keys {
			if !strings.Contains(string(text), key) {
				t.Errorf("%s: no %s in %s", name, key, text)
			}
		}
		security := made.Security()
		if (security.Flooding != nil) != c.flooding {
			t.Errorf("%s: flooding %+v", name, security.Flooding)
		}
		for _, key := range security.Keys {
			if key.LogQ <= 0 || key.LogQ+key.LogP > key.Limit {
				t.Errorf("%s: %+v", name, key)
			}
		}
	}
}
