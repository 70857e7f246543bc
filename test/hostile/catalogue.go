// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
)

// attacks are all hostile requests, in the order in which they are sent.
func attacks() []attack {
	var all []attack
	for _, group := range [][]attack{specs(), encodings(), sizes(), regularExpressions(), metadata(), patches(), reads(), subresources(), sequences(), groupSets(), connections(), directly(), loads()} {
		all = append(all, group...)
	}
	return all
}

// specs are objects on which validation would have to work hard.
func specs() []attack {
	return []attack{
		createJSON("1,000 claim templates x and 2,000 volumes x", func() []byte { return claims(1000, 2000) }),
		createJSON("12,000 claim templates x and 60,000 volumes x", func() []byte { return claims(12_000, 60_000) }),
		createJSON("5,000 rules on 3,500 replicatedJobs", func() []byte {
			return rules(3500, times(5000, func(i int) string {
				return fmt.Sprintf(`{"name":"r%d","action":"FailJobSet","targetReplicatedJobs":["j%d"]}`, i, i%3500)
			}))
		}),
		createJSON("one rule with 200,000 targets", func() []byte {
			return rules(1, `{"name":"r","action":"FailJobSet","targetReplicatedJobs":[`+fill(`"j0"`)+`]}`)
		}),
		createJSON("success policy with 200,000 targets", func() []byte {
			return jobSet("success", numbered("")(0), `,"successPolicy":{"operator":"All","targetReplicatedJobs":[`+fill(`"x"`)+`]}`)
		}),
		createJSON("60 KB of containers without names", func() []byte { return jobSet("containers", podWith(`"containers":[`+same(20_000, `{}`)+`]`), "") }),
		createJSON("1.5 MB of containers without names", func() []byte { return jobSet("containers", podWith(`"containers":[`+fill(`{}`)+`]`), "") }),
		createJSON("1.5 MB of volumes without names", func() []byte { return jobSet("volumes", podWith(`"volumes":[`+fill(`{}`)+`]`), "") }),
		createJSON("1.5 MB of environment variables", func() []byte {
			return jobSet("env", podWith(`"containers":[{"name":"c","image":"i","env":[`+fill(`{"name":"a","value":""}`)+`]}]`), "")
		}),
		createJSON("40,000 dependencies on one name", func() []byte {
			return jobSet("depends", numbered("")(0)+","+oneJob("last", `,"dependsOn":[`+same(40_000, `{"name":"j0","status":"Ready"}`)+`]`), "")
		}),
		createJSON("1,000 replicatedJobs with up to 39 dependencies", func() []byte {
			return jobSet("depends", times(1000, func(i int) string {
				return oneJob(fmt.Sprintf("j%d", i), `,"dependsOn":[`+times(i%40, func(k int) string {
					return fmt.Sprintf(`{"name":"j%d","status":"Ready"}`, k)
				})+`]`)
			}), "")
		}),
	}
}

// encodings are the same emptiness in every encoding, and what decoders stumble over.
func encodings() []attack {
	empty := func(size int) []byte { return jobSet("empty", same(size/3, `{}`), "") }
	return []attack{
		createJSON("1.5 MB of {} in JSON", func() []byte { return empty(bodyBytes) }),
		createJSON("900 KB of {} in JSON", func() []byte { return empty(900_000) }),
		create("1.5 MB of {} in YAML", yamlType, func() []byte { return yamlJobs(strings.Repeat("  - {}\n", bodyBytes/7-100)) }),
		create("1.5 MB of {} in YAML on one line", yamlType, func() []byte { return yamlJobs("    [" + fill("{}") + "]\n") }),
		create("1.5 MB of {} in protobuf", protobufType, func() []byte { return protobuf([]byte(strings.Repeat("\x0a\x00", bodyBytes/2-100))) }),
		create("1.5 MB of {} in CBOR", cborType, func() []byte { return cbor(bodyBytes - 1000) }),
		create("protobuf that promises 2 GiB", protobufType, func() []byte {
			return append(protobuf(nil), 0x12, 0xff, 0xff, 0xff, 0xff, 0x07)
		}),
		create("CBOR that promises 4,294,967,295 elements", cborType, func() []byte {
			body := cbor(0)
			return append(body[:len(body)-4], 0xff, 0xff, 0xff, 0xff)
		}),
		create("protobuf in which JSON is", protobufType, func() []byte { return jobSet("wrong", numbered("")(0), "") }),
		create("a content type that does not exist", "application/xml", func() []byte { return []byte(strings.Repeat("<a>", bodyBytes/3)) }),
		createJSON("arrays 700,000 levels deep in JSON", func() []byte {
			return jobSet("deep", strings.Repeat("[", bodyBytes/2-1000)+strings.Repeat("]", bodyBytes/2-1000), "")
		}),
		createJSON("objects 250,000 levels deep in an unknown field", func() []byte {
			return jobSet("deep", numbered("")(0), `,"x":`+strings.Repeat(`{"a":`, 250_000)+"1"+strings.Repeat("}", 250_000))
		}),
		create("arrays 100,000 levels deep in YAML", yamlType, func() []byte {
			return yamlJobs("    " + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "\n")
		}),
		create("YAML aliases that grow to 10^9", yamlType, func() []byte { return aliases(9) }),
		createJSON("130,000 unknown fields", func() []byte {
			return jobSet("unknown", numbered("")(0), ","+times(130_000, func(i int) string { return fmt.Sprintf(`"x%d":1`, i) }))
		}),
		{name: "130,000 unknown fields, strict", send: request{
			method: http.MethodPost, contentType: jsonType, query: url.Values{"fieldValidation": {"Strict"}},
			body: func() []byte {
				return jobSet("unknown", numbered("")(0), ","+times(130_000, func(i int) string { return fmt.Sprintf(`"x%d":1`, i) }))
			},
		}.one},
		createJSON("a number of 1 MB", func() []byte {
			return jobSet("number", oneJob("j", `,"replicas":`+strings.Repeat("1", 1_000_000)), "")
		}),
	}
}

// sizes are small objects that ask for much.
func sizes() []attack {
	replicas := func(n int) string { return fmt.Sprintf(`,"replicas":%d`, n) }
	return []attack{
		createJSON("a million suspended replicas", func() []byte { return jobSet("million", oneJob("j", replicas(1_000_000)), "") }),
		onlyFull(createJSON("100,000 suspended replicas", func() []byte { return jobSet("many", oneJob("j", replicas(100_000)), "") })),
		createJSON("two replicatedJobs of 2,147,483,647 replicas", func() []byte {
			return jobSet("overflow", times(2, numbered(replicas(math.MaxInt32))), "")
		}),
		createJSON("15,000 replicatedJobs", func() []byte { return jobSet("wide", times(15_000, numbered("")), "") }),
		create("replicatedJobs of 1.5 MB in protobuf", protobufType, protobufJobs),
		createJSON("1,000 replicatedJobs with 1,000 replicas", func() []byte { return jobSet("wide", times(1000, numbered(replicas(1000))), "") }),
		createJSON("pods of 2,147,483,647 in parallel", func() []byte {
			return jobSet("pods", `{"name":"w","replicas":2147483647,"template":{"spec":{"parallelism":2147483647,"completions":2147483647,`+
				`"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}}`, "")
		}),
	}
}

// regularExpressions are patterns that are short and compile for long.
func regularExpressions() []attack {
	quoted := func(pattern string) string { return fmt.Sprintf("%q", pattern) }
	return []attack{
		createJSON("a pattern of 21 KB", func() []byte { return patterns(quoted(strings.Repeat("x{1000}", 3000))) }),
		createJSON("nested repetitions", func() []byte { return patterns(quoted(strings.Repeat("((((x{5}){5}){5}){8})", 900))) }),
		createJSON("20,000 patterns", func() []byte { return patterns(same(20_000, quoted("(?i)\\pL{10}"))) }),
		createJSON("64 patterns of 1 KiB", func() []byte { return patterns(same(64, quoted(strings.Repeat("x{1000}", 146)))) }),
	}
}

// metadata is what every object has.
func metadata() []attack {
	job := numbered("")(0)
	entries := func(n int, value string) string {
		return times(n, func(i int) string { return fmt.Sprintf(`"k%d":%q`, i, value) })
	}
	return []attack{
		createJSON("100,000 labels", func() []byte { return jobSetMeta(`"name":"l","labels":{`+entries(100_000, "")+`}`, job, "") }),
		createJSON("100,000 labels with wrong keys", func() []byte {
			return jobSetMeta(`"name":"l","labels":{`+times(100_000, func(i int) string { return fmt.Sprintf(`"/%d":""`, i) })+`}`, job, "")
		}),
		createJSON("an annotation of 1.4 MB", func() []byte {
			return jobSetMeta(`"name":"a","annotations":{`+entries(1, strings.Repeat("x", 1_400_000))+`}`, job, "")
		}),
		createJSON("a name of 1 MB", func() []byte { return jobSetMeta(fmt.Sprintf(`"name":%q`, strings.Repeat("n", 1_000_000)), job, "") }),
		createJSON("30,000 owners", func() []byte {
			return jobSetMeta(`"name":"o","ownerReferences":[`+fill(`{"kind":"","name":""}`)+`]`, job, "")
		}),
		createJSON("100,000 finalizers", func() []byte { return jobSetMeta(`"name":"f","finalizers":[`+fill(`"a/b"`)+`]`, job, "") }),
		createJSON("12,000 managers", func() []byte {
			return jobSetMeta(`"name":"m","managedFields":[`+times(12_000, func(i int) string {
				return fmt.Sprintf(`{"manager":"m%d","operation":"Update","apiVersion":%q,"fieldsType":"FieldsV1","fieldsV1":{}}`, i, apiVersion)
			})+`]`, job, "")
		}),
		createJSON("a manager of 1.4 MB of fields", func() []byte {
			return jobSetMeta(`"name":"m","managedFields":[{"manager":"m","operation":"Update","apiVersion":"`+apiVersion+`","fieldsType":"FieldsV1","fieldsV1":{`+
				times(110_000, func(i int) string { return fmt.Sprintf(`"f:%d":{}`, i) })+`}}]`, job, "")
		}),
	}
}
