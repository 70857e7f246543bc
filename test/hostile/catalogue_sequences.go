// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"net/http"
	"strings"
)

const (
	sequenceVersion = "batch.jobset-apiserver.io/v1alpha1"
	sequentialJobs  = "sequentialjobs"
)

// sequence is a SequentialJob with that spec.
func sequence(name, spec string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"SequentialJob","metadata":{"name":%q},"spec":{%s}}`, sequenceVersion, name, spec)
}

// setSteps is steps that are JobSets with those replicatedJobs, and further fields of their spec, which begin with a comma.
func setSteps(n int, replicatedJobs, spec string) string {
	return `"steps":[` + times(n, func(i int) string {
		return fmt.Sprintf(`{"name":"s%d","jobSet":{"spec":{"replicatedJobs":[%s]%s}}}`, i, replicatedJobs, spec)
	}) + `]`
}

// sequences are SequentialJobs on which the server or the controller would have to work hard.
func sequences() []attack {
	create := func(name string, body func() []byte) attack {
		return attack{name: name, send: request{resource: sequentialJobs, method: http.MethodPost, contentType: jsonType, body: body}.one}
	}
	pattern := fmt.Sprintf("%q", strings.Repeat("x{1000}", 146))
	return []attack{
		create("a sequence of 1.5 MB of containers without names", func() []byte { return sequence("c", `"containers":[`+fill(`{}`)+`]`) }),
		create("a sequence of 25,000 containers", func() []byte {
			return sequence("c", `"containers":[`+times(25_000, func(i int) string { return fmt.Sprintf(`{"name":"c%d","image":"i"}`, i) })+`]`)
		}),
		create("a sequence of 1.5 MB of steps without anything", func() []byte { return sequence("s", `"steps":[`+fill(`{}`)+`]`) }),
		create("a sequence of 100 containers in a template of 1.3 MB", func() []byte {
			return sequence("t", fmt.Sprintf(`"suspend":true,"template":{"metadata":{"annotations":{"a":%q}},"spec":{}},"containers":[%s]`,
				strings.Repeat("x", 1_300_000), times(100, func(i int) string { return fmt.Sprintf(`{"name":"c%d","image":"i"}`, i) })))
		}),
		create("a sequence of 100 containers with 10,000 shared volumes", func() []byte {
			return sequence("v", `"suspend":true,"template":{"spec":{"volumes":[`+times(10_000, func(i int) string {
				return fmt.Sprintf(`{"name":"v%d","emptyDir":{}}`, i)
			})+`]}},"containers":[`+times(100, func(i int) string { return fmt.Sprintf(`{"name":"c%d","image":"i"}`, i) })+`]`)
		}),
		create("a sequence of 100 sets with 2,147,483,647 replicas", func() []byte {
			return sequence("r", setSteps(100, oneJob("w", fmt.Sprintf(`,"replicas":%d`, math.MaxInt32)), ""))
		}),
		create("a sequence of 100 sets with 10,000 suspended replicas", func() []byte {
			return sequence("many", setSteps(100, oneJob("w", `,"replicas":10000`), `,"suspend":true`))
		}),
		create("a sequence of 100 sets with 100 replicatedJobs", func() []byte {
			return sequence("wide", `"suspend":true,`+setSteps(100, times(100, numbered("")), ""))
		}),
		create("a sequence of 20 sets with 64 patterns of 1 KiB", func() []byte {
			return sequence("p", setSteps(20, numbered("")(0), `,"failurePolicy":{"rules":[{"name":"r","action":"FailJobSet","onJobFailureMessagePatterns":[`+same(64, pattern)+`]}]}`))
		}),
		create("a sequence with a name of 1 MB", func() []byte {
			return sequence(strings.Repeat("n", 1_000_000), `"containers":[{"image":"i"}]`)
		}),
	}
}
