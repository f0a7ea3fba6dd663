package main

import (
	"os"
	"path/filepath"

	"privet/ckks/internal/cohort"
	"privet/ckks/internal/network"
	"privet/ckks/internal/plan"
	"privet/ckks/internal/program"
)

// describe plans a program's public half, with members for a cohort, and says what the plan is and what it takes.
func describe(j job) error {
	public, err := os.ReadFile(filepath.Join(j.Program, "program.json"))
	if err != nil {
		return err
	}
	if j.Members > 0 {
		s, err := cohort.NewSetup(public, j.Members)
		if err != nil {
			return err
		}
		say("plan", map[string]any{"plan": s.Summary()})
		return nil
	}
	parsed, err := program.Parse(public)
	if err != nil {
		return err
	}
	structure, err := network.Build(parsed, nil)
	if err != nil {
		return err
	}
	planned, err := plan.New(structure)
	if err != nil {
		return err
	}
	say("plan", map[string]any{"plan": planned.Summary()})
	return nil
}
