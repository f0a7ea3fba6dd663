package secret_test

import (
	"testing"

	"privet/ckks/internal/flood"
	"privet/ckks/internal/params"
	"privet/ckks/internal/secret"
)

// TestAKeyRefreshesAndOpensItsRuns makes a key for two runs of one result and two refreshes each.
func TestAKeyRefreshesAndOpensItsRuns(t *testing.T) {
	set, _ := params.ChooseShared(3, 14, 0)
	built, err := set.Build()
	if err != nil {
		t.Fatal(err)
	}
	key, err := secret.ForRuns(built, 2, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	ct := zero(t, key, built, set.Floor())
	refresh := func() error {
		_, err := key.Refresh(ct, set.Depth, flood.New(1, 1))
		return err
	}
	open := func() error {
		_, err := key.Open(ct, flood.New(1, 1))
		return err
	}
	if refresh() == nil || open() == nil {
		t.Error("a key serves before a run")
	}
	// The first run breaks off after a refresh: the other one and the result are lost.
	if !key.BeginRun() || refresh() != nil || !key.BeginRun() {
		t.Fatal("there are two runs")
	}
	for range 2 {
		if err := refresh(); err != nil {
			t.Fatal(err)
		}
	}
	if refresh() == nil {
		t.Error("a key refreshed beyond its run")
	}
	if err := open(); err != nil {
		t.Error(err)
	}
	if open() == nil || key.BeginRun() {
		t.Error("a key serves beyond its budget")
	}
}
