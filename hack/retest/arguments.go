// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// arguments are the arguments of go test.
type arguments struct {
	flags, packages []string
	// binary are -args and what follows, which go test passes to the test binary.
	binary []string
}

// Flags of go test, those without a value first. Others are accepted as -flag=value only, since it is unknown whether a value
// follows them.
var (
	booleans = strings.Fields(`a artifacts asan benchmem buildvcs c cover failfast fullpath json linkshared modcacherw msan n race short
		trimpath v work x`)
	valued = strings.Fields(`C asmflags bench benchtime blockprofile blockprofilerate buildmode compiler count covermode coverpkg coverprofile
		cpu cpuprofile exec fuzz fuzzminimizetime fuzztime gccgoflags gcflags installsuffix ldflags list memprofile memprofilerate mod modfile
		mutexprofile mutexprofilefraction o outputdir overlay p parallel pgo pkgdir run shuffle skip tags timeout toolexec trace vet`)
)

// parse separates the arguments of go test.
func parse(args []string) (arguments, error) {
	var a arguments
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "-args" || arg == "--args" {
			a.binary = args[i:]
			break
		}
		if !strings.HasPrefix(arg, "-") {
			a.packages = append(a.packages, arg)
			continue
		}
		a.flags = append(a.flags, arg)
		name := nameOf(arg)
		switch {
		case strings.Contains(name, "=") || slices.Contains(booleans, name):
		case !slices.Contains(valued, name):
			return a, fmt.Errorf("flag %s is unknown: write %[1]s=VALUE", arg)
		case i+1 == len(args):
			return a, fmt.Errorf("flag %s has no value", arg)
		default:
			i++
			a.flags = append(a.flags, args[i])
		}
	}
	return a, nil
}

// nameOf returns the name of a flag, which a value may follow.
func nameOf(flag string) string { return strings.TrimPrefix(strings.TrimLeft(flag, "-"), "test.") }

// has says whether one of the flags of go test is given.
func (a arguments) has(names ...string) bool {
	return slices.ContainsFunc(a.flags, func(flag string) bool {
		name, _, _ := strings.Cut(nameOf(flag), "=")
		return strings.HasPrefix(flag, "-") && slices.Contains(names, name)
	})
}

// matches says whether the pattern of packages may mean the package of this name. Only go knows the module of a relative path, so any
// module matches.
func matches(pattern, name string) bool {
	dir, recursive := strings.CutSuffix(pattern, "...")
	dir = strings.TrimSuffix(path.Clean(dir), "/")
	switch {
	case dir == "." || strings.HasSuffix(dir, "..") || strings.Contains(dir, "...") || strings.HasSuffix(dir, ".go"):
		return true
	case strings.HasPrefix(pattern, "."):
		for strings.HasPrefix(dir, "../") {
			dir = dir[len("../"):]
		}
		name, dir = "/"+name, "/"+dir
		return strings.HasSuffix(name, dir) || recursive && strings.Contains(name, dir+"/")
	}
	return name == dir || recursive && strings.HasPrefix(name, dir+"/")
}

// command returns the arguments of go for the run.
func (a arguments) command() []string {
	return slices.Concat([]string{"test"}, a.flags, []string{"-json"}, a.packages, a.binary)
}

// only returns the arguments that run the tests of one package, one at a time, or all its tests if none are given. Of two flags
// with one name, go test obeys the second.
func (a arguments) only(name string, tests []failure) arguments {
	flags := append(slices.Clone(a.flags), "-count=1", "-parallel=1")
	if len(tests) > 0 {
		var names []string
		for _, test := range tests {
			names = append(names, regexp.QuoteMeta(test.Test))
		}
		flags = append(flags, "-run=^("+strings.Join(names, "|")+")$")
	}
	return arguments{flags: flags, packages: []string{name}, binary: a.binary}
}
