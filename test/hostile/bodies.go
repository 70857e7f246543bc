// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// bodyBytes is about what etcd takes in one object, and so the largest body that can be meant well.
const bodyBytes = 1_500_000

const (
	apiVersion = "jobset.x-k8s.io/v1alpha2"
	// smallPod is the rest of a replicatedJob after its name.
	smallPod = `"template":{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}`
)

// jobSet is a suspended JobSet with further fields of its spec, which begin with a comma.
func jobSet(name string, replicatedJobs, spec string) []byte {
	return jobSetMeta(fmt.Sprintf(`"name":%q`, name), replicatedJobs, spec)
}

func jobSetMeta(metadata, replicatedJobs, spec string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"JobSet","metadata":{%s},"spec":{"suspend":true,"replicatedJobs":[%s]%s}}`,
		apiVersion, metadata, replicatedJobs, spec)
}

// oneJob is one valid replicatedJob with further fields, which begin with a comma.
func oneJob(name, fields string) string {
	return fmt.Sprintf(`{"name":%q,%s%s}`, name, smallPod, fields)
}

// podWith is a replicatedJob whose pod has these fields.
func podWith(fields string) string {
	return `{"name":"w","template":{"spec":{"template":{"spec":{` + fields + `}}}}}`
}

// times joins what the function makes for 0 to n-1 with commas.
func times(n int, make func(int) string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(make(i))
	}
	return b.String()
}

// same joins n copies with commas.
func same(n int, text string) string { return times(n, func(int) string { return text }) }

// fill joins as many copies with commas as a body takes.
func fill(text string) string { return same((bodyBytes-1000)/(len(text)+1), text) }

// numbered is a valid replicatedJob for a number.
func numbered(fields string) func(int) string {
	return func(i int) string { return oneJob(fmt.Sprintf("j%d", i), fields) }
}

// claims has every template and every volume of one name.
func claims(templates, volumes int) []byte {
	job := podWith(`"containers":[{"name":"c","image":"i"}],"volumes":[` + same(volumes, `{"name":"x"}`) + `]`)
	return jobSet("claims", job, `,"volumeClaimPolicies":[{"templates":[`+same(templates, `{"metadata":{"name":"x"}}`)+`]}]`)
}

// rules has a failure policy with those rules.
func rules(jobs int, rules string) []byte {
	return jobSet("rules", times(jobs, numbered("")), `,"failurePolicy":{"rules":[`+rules+`]}`)
}

// patterns has one rule with those patterns, as quoted strings.
func patterns(list string) []byte {
	return rules(1, `{"name":"r","action":"FailJobSet","onJobFailureMessagePatterns":[`+list+`]}`)
}

// yamlJobs is a set in YAML with that text below replicatedJobs.
func yamlJobs(text string) []byte {
	return []byte("apiVersion: " + apiVersion + "\nkind: JobSet\nmetadata: {name: yaml}\nspec:\n  suspend: true\n  replicatedJobs:\n" + text)
}

// aliases is a YAML text whose references grow to ten to the power of the levels.
func aliases(levels int) []byte {
	var b strings.Builder
	b.WriteString("apiVersion: " + apiVersion + "\nkind: JobSet\nmetadata:\n  name: bomb\nl0: &l0 \"lol\"\n")
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&b, "l%d: &l%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d,", i-1), 10), ","))
	}
	fmt.Fprintf(&b, "spec:\n  replicatedJobs: *l%d\n", levels)
	return []byte(b.String())
}

// field is a length-delimited field of protobuf.
func field(number int, content []byte) []byte {
	head := binary.AppendUvarint([]byte{byte(number<<3 | 2)}, uint64(len(content)))
	return append(head, content...)
}

// protobuf is a JobSet with that spec in the envelope of Kubernetes.
func protobuf(spec []byte) []byte {
	typeMeta := append(field(1, []byte(apiVersion)), field(2, []byte("JobSet"))...)
	object := append(field(1, field(1, []byte("protobuf"))), field(2, spec)...)
	return append([]byte("k8s\x00"), append(field(1, typeMeta), field(2, object)...)...)
}

// protobufJobs is valid replicatedJobs, as many as a body takes.
func protobufJobs() []byte {
	container := append(field(1, []byte("c")), field(2, []byte("i"))...)
	pod := field(2, field(6, field(2, field(2, container)))) // template.spec.template.spec.containers
	var spec []byte
	for i := 0; len(spec) < bodyBytes-1000; i++ {
		job := append(field(1, fmt.Appendf(nil, "j%d", i)), field(3, pod)...)
		spec = append(spec, field(1, job)...)
	}
	return protobuf(append(spec, 6<<3, 1)) // suspend: true
}

// cbor is a JobSet with so many empty replicatedJobs.
func cbor(jobs int) []byte {
	var b bytes.Buffer
	text := func(s string) {
		b.WriteByte(0x60 | byte(min(len(s), 23)))
		b.WriteString(s[:min(len(s), 23)])
	}
	b.Write([]byte{0xd9, 0xd9, 0xf7, 0xa4})
	text("apiVersion")
	b.WriteByte(0x78)
	b.WriteByte(byte(len(apiVersion)))
	b.WriteString(apiVersion)
	text("kind")
	text("JobSet")
	text("metadata")
	b.WriteByte(0xa1)
	text("name")
	text("cbor")
	text("spec")
	b.WriteByte(0xa1)
	text("replicatedJobs")
	b.WriteByte(0x9a)
	_ = binary.Write(&b, binary.BigEndian, uint32(jobs)) // a buffer takes everything
	b.Write(bytes.Repeat([]byte{0xa0}, jobs))
	return b.Bytes()
}

// copies is a JSON patch that doubles a value with each operation.
func copies(value, operations int) []byte {
	first := fmt.Sprintf(`{"op":"add","path":"/metadata/annotations","value":{"a":%q}}`, strings.Repeat("x", value))
	return []byte("[" + first + "," + times(operations, func(i int) string {
		return fmt.Sprintf(`{"op":"copy","from":"/metadata/annotations","path":"/metadata/annotations/c%d"}`, i)
	}) + "]")
}

// conditions is a status with so many conditions.
func conditions(n int) string {
	return `"conditions":[` + times(n, func(i int) string {
		return fmt.Sprintf(`{"type":"T%d","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}`, i)
	}) + `]`
}

// attempts is a status with so many attempts.
func attempts(n int) string {
	return `"attempts":[` + times(n, func(i int) string {
		return fmt.Sprintf(`{"number":%d,"trigger":"Create","scope":"JobSet"}`, i)
	}) + `]`
}
