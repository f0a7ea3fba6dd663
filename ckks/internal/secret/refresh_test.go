package secret_test

import (
	"testing"

	"privet/ckks/internal/flood"
	"privet/ckks/internal/params"
	"privet/ckks/internal/secret"
)

// TestAKeyRefreshesItsBudget makes a key for one run of one result and two refreshes.
func TestAKeyRefreshesItsBudget(t *testing.T) {
	set, _ := params.ChooseShared(3, 14, 0)
	built, err := set.Build()
	if err != nil {
		t.Fatal(err)
	}
	key, err := secret.ForRuns(built, 1, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	ct := zero(t, key, built, set.Floor())
	for left := 2; left > 0; left-- {
		if !key.Covers(1, left) || key.Covers(1, left+1) || key.Covers(2, left) {
			t.Fatalf("with %d refreshes left the budget is another one", left)
		}
		if _, err := key.Refresh(ct, set.Depth, flood.New(1, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := key.Refresh(ct, set.Depth, flood.New(1, 1)); err == nil || key.Covers(0, 1) {
		t.Error("a key refreshed beyond its budget")
	}
	if _, err := key.Open(ct, flood.New(1, 1)); err != nil {
		t.Error(err)
	}
	if _, err := key.Open(ct, flood.New(1, 1)); err == nil {
		t.Error("a key decrypted beyond its budget")
	}
}
