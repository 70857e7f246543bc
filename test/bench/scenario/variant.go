// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// Variant is another way to create the sets of big and run: with annotations that select how the controller treats them.
type Variant struct {
	// Name is a DNS label.
	Name        string
	Annotations map[string]string
}

// ParseVariant reads NAME:KEY=VALUE[,KEY=VALUE...].
func ParseVariant(text string) (Variant, error) {
	name, annotations, _ := strings.Cut(text, ":")
	v := Variant{Name: name, Annotations: map[string]string{}}
	if len(validation.IsDNS1123Label(name)) > 0 {
		return v, fmt.Errorf("%q must begin with a name of lowercase letters, digits and hyphens, and a colon", text)
	}
	for pair := range strings.SplitSeq(annotations, ",") {
		key, value, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return v, fmt.Errorf("%q must have annotations in the form KEY=VALUE, not %q", text, pair)
		}
		v.Annotations[key] = value
	}
	return v, nil
}

// varied are the scenarios that variants apply to.
var varied = []string{"big", "run"}

// WithVariants adds scenarios with the sets of each variant behind those without. They are short.
func WithVariants(scenarios []Scenario, variants []Variant) []Scenario {
	var all []Scenario
	for _, s := range scenarios {
		all = append(all, s)
		if !slices.Contains(varied, s.Name) {
			continue
		}
		for _, v := range variants {
			all = append(all, s.with(v))
		}
	}
	return all
}

func (s Scenario) with(v Variant) Scenario {
	plain := s.run
	s.Name = report.VariantName(s.Name, v.Name)
	s.run = func(ctx context.Context, r *runner) error {
		env, other := *r.Env, *r
		env.Annotations, env.Short = maps.Clone(v.Annotations), true
		other.Env = &env
		return plain(ctx, &other)
	}
	return s
}

// Turns returns the scenarios that take turns, in the order of a round. The order of every second round is reversed, so that none always comes after the same other one.
func Turns(scenarios []Scenario, round int) []Scenario {
	taking := slices.DeleteFunc(slices.Clone(scenarios), func(s Scenario) bool { return !s.TakesTurns })
	if round%2 == 1 {
		slices.Reverse(taking)
	}
	return taking
}
