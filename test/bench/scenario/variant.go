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

// Variant is another way to create the sets of some scenarios: with annotations that select how the controller treats them.
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

var (
	// varied are the scenarios that are run with the sets of each variant too.
	varied = []string{"big", "large", "run"}
	// variedOnly are the scenarios that take too long for both: if there are variants, they are run with the variants alone. Beside upstream,
	// they are run without variants.
	variedOnly = []string{"growth", "many", "rate"}
)

// WithVariants adds scenarios with the sets of each variant behind those without. They are short unless they take the
// place of those without.
func WithVariants(scenarios []Scenario, variants []Variant) []Scenario {
	var all []Scenario
	for _, s := range scenarios {
		beside, only := slices.Contains(varied, s.Name), slices.Contains(variedOnly, s.Name) && !s.beside
		if !only || len(variants) == 0 {
			all = append(all, s)
		}
		if !beside && !only {
			continue
		}
		for _, v := range variants {
			all = append(all, s.with(v, beside))
		}
	}
	return all
}

func (s Scenario) with(v Variant, short bool) Scenario {
	plain := s.run
	s.Name = report.VariantName(s.Name, v.Name)
	s.run = func(ctx context.Context, r *runner) error {
		env, other := *r.Env, *r
		env.Annotations, env.Short = maps.Clone(v.Annotations), short
		other.Env = &env
		return plain(ctx, &other)
	}
	return s
}

// Turns returns the scenarios that take turns, in the order of a round. The order of every second round is reversed, so
// that none always comes after the same other one.
func Turns(scenarios []Scenario, round int) []Scenario {
	taking := slices.DeleteFunc(slices.Clone(scenarios), func(s Scenario) bool { return !s.TakesTurns })
	if round%2 == 1 {
		slices.Reverse(taking)
	}
	return taking
}
