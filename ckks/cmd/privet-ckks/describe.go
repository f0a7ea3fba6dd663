package main

import (
	"os"
	"path/filepath"

	"privet/ckks/internal/session"
)

// fetch writes the public half of what a server offers to the job's result.
func fetch(j job) error {
	link, err := dial(j, "client")
	if err != nil {
		return err
	}
	public, err := session.Fetch(link, j.Model, terms(j).Scenario)
	if err != nil {
		return err
	}
	if err := os.WriteFile(j.Result, public, 0o600); err != nil {
		return err
	}
	say("fetched", map[string]any{"server": link.Peer()})
	return nil
}

// describe plans a program's public half for the job's scenario and says what the plan is and what it takes.
func describe(j job) error {
	if j.Scenario == collective {
		s, err := setup(j)
		if err != nil {
			return err
		}
		say("plan", map[string]any{"plan": s.Summary()})
		return nil
	}
	public, err := os.ReadFile(filepath.Join(j.Program, "program.json"))
	if err != nil {
		return err
	}
	planned, err := terms(j).Plan(public)
	if err != nil {
		return err
	}
	say("plan", map[string]any{"plan": planned.Summary()})
	return nil
}

const collective = "collective"
