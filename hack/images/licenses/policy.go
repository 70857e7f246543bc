// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package licenses

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Policy says which licenses the modules of programs may have.
type Policy struct {
	// Allowed are identifiers of SPDX.
	Allowed []string `json:"allowed"`
	// Exceptions are modules that have further licenses.
	Exceptions []Exception `json:"exceptions"`

	// file is where the policy is from, for messages.
	file string
}

// Exception permits licenses of one module.
type Exception struct {
	Module string `json:"module"`
	// Licenses are identifiers of SPDX, or Unrecognized for a text that a person has read.
	Licenses []string `json:"licenses"`
	// Reason says why the module may be used in spite of its license. It is required.
	Reason string `json:"reason"`
}

// ReadPolicy reads a policy from a file of YAML.
func ReadPolicy(file string) (Policy, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return Policy{}, err
	}
	p := Policy{file: file}
	if err := yaml.UnmarshalStrict(content, &p); err != nil {
		return Policy{}, fmt.Errorf("%s: %w", file, err)
	}
	var errs []error
	if len(p.Allowed) == 0 {
		errs = append(errs, fmt.Errorf("%s: allowed must have a license", file))
	}
	for i, e := range p.Exceptions {
		if e.Module == "" || len(e.Licenses) == 0 || strings.TrimSpace(e.Reason) == "" {
			errs = append(errs, fmt.Errorf("%s: exceptions[%d]: module, licenses and reason are required", file, i))
		}
	}
	return p, errors.Join(errs...)
}

// Check returns an error for each license of a module that is neither allowed nor an exception, and for each exception that no module
// needs.
func (p Policy) Check(modules []Module) error {
	var errs []error
	needed := map[string]bool{}
	for _, m := range modules {
		for _, license := range m.Licenses() {
			switch {
			case slices.Contains(p.Allowed, license):
			case p.excepted(m.Path, license):
				needed[m.Path+" "+license] = true
			default:
				errs = append(errs, p.refusal(m, license))
			}
		}
	}
	for _, e := range p.Exceptions {
		for _, license := range e.Licenses {
			if !needed[e.Module+" "+license] {
				errs = append(errs, fmt.Errorf("%s: the exception for %s with license %s is not needed: remove it", p.file, e.Module, license))
			}
		}
	}
	return errors.Join(errs...)
}

func (p Policy) excepted(module, license string) bool {
	return slices.ContainsFunc(p.Exceptions, func(e Exception) bool { return e.Module == module && slices.Contains(e.Licenses, license) })
}

func (p Policy) refusal(m Module, license string) error {
	var where []string
	for _, f := range m.Files {
		if slices.Contains(f.Licenses, license) {
			where = append(where, f.Name)
		}
	}
	if len(where) == 0 {
		return fmt.Errorf("%s %s: no file with a license found: remove the module, or add an exception with license %s and a reason to %s",
			m.Path, m.Version, license, p.file)
	}
	return fmt.Errorf("%s %s: license %s in %s is not allowed: remove the module, or add an exception with a reason to %s",
		m.Path, m.Version, license, strings.Join(where, ", "), p.file)
}
