// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// longestProfile is how long the CPU is profiled at most.
const longestProfile = time.Minute

// profiledPrograms are the programs whose profiles can be had.
var profiledPrograms = []string{"kube-apiserver", "jobset-apiserver", "jobset-controller"}

// Profile runs a scenario once more, if that does not take long, and writes profiles. How long the CPU is profiled must be
// known before; it is what each phase took when it was measured.
func (s Scenario) Profile(ctx context.Context, env *Env, measured *report.Scenario) error {
	if !s.profiled || env.Profiles == "" {
		return nil
	}
	once := *s.in(env)
	once.Runs = 1
	once.Sizes.Lists = once.Sizes.Lists[:1]
	r := &runner{Env: &once, to: &report.Scenario{Name: s.Name}, walls: map[string]time.Duration{}}
	for _, p := range measured.Phases {
		r.walls[p.Name] = time.Duration(p.Last("wall") * float64(time.Second))
	}
	var err error
	if r.meter, err = env.Cluster.NewMeter(ctx, env.IdleFor, env.IdleEvery); err != nil {
		return err
	}
	env.Log("%s: once more for profiles", s.Name)
	if err := s.run(ctx, r); err != nil {
		return fmt.Errorf("profiling scenario %s: %w", s.Name, err)
	}
	return nil
}

// profile begins profiles of a phase if this is the run for them. What it returns waits until they are written.
func (r *runner) profile(ctx context.Context, phase string) func() error {
	if r.walls == nil {
		return func() error { return nil }
	}
	seconds := int(math.Ceil(min(r.walls[phase], longestProfile).Seconds()))
	failures := make(chan error, len(profiledPrograms))
	for _, program := range profiledPrograms {
		go func() { failures <- r.writeProfile(ctx, program, phase, "profile", max(seconds, 1)) }()
	}
	return func() error {
		var errs []error
		for range profiledPrograms {
			errs = append(errs, <-failures)
		}
		for _, program := range profiledPrograms {
			errs = append(errs, r.writeProfile(ctx, program, phase, "heap", 0))
		}
		return errors.Join(errs...)
	}
}

func (r *runner) writeProfile(ctx context.Context, program, phase, kind string, seconds int) error {
	data, err := r.Cluster.Profile(ctx, program, kind, seconds)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.Profiles, 0o755); err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%s-%s.%s.pprof", r.to.Name, phase, program, kind)
	name = strings.NewReplacer(" ", "-", ":", "").Replace(name)
	return os.WriteFile(filepath.Join(r.Profiles, name), data, 0o644)
}
