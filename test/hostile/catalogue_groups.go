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

const (
	groupVersion      = "leaderworkerset.x-k8s.io/v1"
	leaderWorkerSets  = "leaderworkersets"
	roleVersion       = "disaggregatedset.x-k8s.io/v1"
	disaggregatedSets = "disaggregatedsets"
)

// groupsOf is a LeaderWorkerSet with these fields of its metadata, beside the name and with a comma at the end, and of
// its spec. Its pods have these fields. Without an image its StatefulSet is refused, so that no pods are made of what
// only the server and the controller are to bear.
func groupsOf(metadata, spec, pod string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"LeaderWorkerSet","metadata":{%s"name":"g"},"spec":{%s"leaderWorkerTemplate":{"workerTemplate":{"spec":{%s}}}}}`,
		groupVersion, metadata, spec, pod)
}

// imageless is a container that the server takes and that a StatefulSet does not.
const imageless = `"containers":[{"name":"c"}]`

// containers are so many of them.
func containers(n int) string {
	return `"containers":[` + times(n, func(i int) string { return fmt.Sprintf(`{"name":"c%d"}`, i) }) + `]`
}

// variable is a container with a value of so many bytes.
func variable(size int) string {
	return fmt.Sprintf(`"containers":[{"name":"c","env":[{"name":"a","value":%q}]}]`, strings.Repeat("x", size))
}

// rolesOf is a DisaggregatedSet with so many slices, and roles with so many groups of pods with these fields.
func rolesOf(slices, roles, replicas int, pod string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"DisaggregatedSet","metadata":{"name":"r"},"spec":{"slices":%d,"roles":[%s]}}`, roleVersion, slices,
		times(roles, func(i int) string {
			return fmt.Sprintf(`{"name":"r%d","spec":{"replicas":%d,"leaderWorkerTemplate":{"workerTemplate":{"spec":{%s}}}}}`, i, replicas, pod)
		}))
}

// groupSets are LeaderWorkerSets and DisaggregatedSets on which the server or the controller would have to work hard.
func groupSets() []attack {
	create := func(name, resource string, body func() []byte) attack {
		return attack{name: name, send: request{resource: resource, method: http.MethodPost, contentType: jsonType, body: body}.one}
	}
	one := func(name string, body func() []byte) attack { return create(name, leaderWorkerSets, body) }
	roles := func(name string, body func() []byte) attack { return create(name, disaggregatedSets, body) }
	return append([]attack{
		one("groups of 1.5 MB of containers without names", func() []byte { return groupsOf("", "", `"containers":[`+fill(`{}`)+`]`) }),
		one("groups of 19,000 containers", func() []byte { return groupsOf("", "", containers(19_000)) }),
		one("10,000 groups of 1.3 MB", func() []byte { return groupsOf("", `"replicas":10000,`, variable(1_300_000)) }),
		one("a million groups", func() []byte { return groupsOf("", `"replicas":1000000,`, imageless) }),
		one("groups of 2,147,483,647 pods", func() []byte {
			return []byte(strings.Replace(string(groupsOf("", `"replicas":1,`, imageless)), `"workerTemplate"`, `"size":2147483647,"workerTemplate"`, 1))
		}),
		one("groups with an annotation of 1.4 MB", func() []byte {
			return groupsOf(`"annotations":{"a":"`+strings.Repeat("x", 1_400_000)+`"},`, "", imageless)
		}),
		one("groups with 100,000 labels", func() []byte {
			return groupsOf(`"labels":{`+times(100_000, func(i int) string { return fmt.Sprintf(`"k%d":""`, i) })+`},`, "", imageless)
		}),
		one("groups 250,000 levels deep", func() []byte {
			return groupsOf("", "", imageless+`,"x":`+strings.Repeat(`{"a":`, 250_000)+"1"+strings.Repeat("}", 250_000))
		}),
		roles("1.5 MB of roles without anything", func() []byte {
			return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"DisaggregatedSet","metadata":{"name":"r"},"spec":{"roles":[%s]}}`, roleVersion, fill(`{}`))
		}),
		roles("10 roles of 1.5 MB of containers without names", func() []byte { return rolesOf(1, 10, 1, `"containers":[`+same(49_000, `{}`)+`]`) }),
		roles("100 slices of 10 roles of a million groups", func() []byte { return rolesOf(100, 10, 1_000_000, imageless) }),
		roles("100 slices of two roles of 490 containers", func() []byte { return rolesOf(100, 2, 1, containers(490)) }),
		roles("100 slices of two roles of 9,000 containers", func() []byte { return rolesOf(100, 2, 1, containers(9000)) }),
	}, groupWrites()...)
}

// groupWrites change the LeaderWorkerSet that is there before each attack.
func groupWrites() []attack {
	write := func(name, method, path, contentType string, body func() []byte) attack {
		query := url.Values{}
		if strings.Contains(contentType, "apply") {
			query = url.Values{"fieldManager": {"hostile"}, "force": {"true"}}
		}
		return attack{name: name, send: request{
			resource: leaderWorkerSets, method: method, path: "/" + victim + path, contentType: contentType, query: query, body: body,
		}.one}
	}
	status := func(name, content string) attack {
		return write(name, http.MethodPatch, "/status", mergePatch, func() []byte { return []byte(`{"status":{` + content + `}}`) })
	}
	renamed := func(body []byte) []byte {
		return []byte(strings.Replace(string(body), `"name":"g"`, `"name":"`+victim+`"`, 1))
	}
	all := []attack{
		write("a JSON patch of groups whose copies double", http.MethodPatch, "", jsonPatch, func() []byte { return copies(10_000, 40) }),
		write("a strategic merge patch of 15,000 containers of groups", http.MethodPatch, "", strategic, func() []byte {
			return []byte(`{"spec":{"leaderWorkerTemplate":{"workerTemplate":{"spec":{` + containers(15_000) + `}}}}}`)
		}),
		write("an apply of 15,000 containers of groups", http.MethodPatch, "", applyPatch, func() []byte { return renamed(groupsOf("", "", containers(15_000))) }),
		write("an apply of 1,900 containers of groups", http.MethodPatch, "", applyPatch, func() []byte { return renamed(groupsOf("", "", containers(1900))) }),
		status("a status of 19,000 groups", `"groups":[`+times(19_000, func(i int) string { return fmt.Sprintf(`{"index":%d}`, i) })+`]`),
		status("a status of 1,000 groups with causes of 1 KB", `"groups":[`+times(1000, func(i int) string {
			return fmt.Sprintf(`{"index":%d,"firstCause":{"message":%q}}`, i, strings.Repeat("x", 1000))
		})+`]`),
		status("a status of 19,000 restarted leaders", `"restart":{"id":1,"leaders":[`+times(19_000, func(i int) string { return fmt.Sprintf(`"u%d"`, i) })+`]}`),
		status("a status with an action of 1 MB", `"lastAction":{"action":"Restart","reason":"`+strings.Repeat("r", 1_000_000)+`"}`),
		write("groups scaled beyond 64 bits", http.MethodPatch, "/scale", mergePatch, func() []byte { return []byte(`{"spec":{"replicas":99999999999999999999}}`) }),
		write("a restart of group 2,147,483,647", http.MethodPost, "/restart", jsonType, func() []byte { return fmt.Appendf(nil, `{"spec":{"group":%d}}`, math.MaxInt32) }),
		write("a rollback to revision 9,223,372,036,854,775,807", http.MethodPost, "/rollback", jsonType, func() []byte {
			return fmt.Appendf(nil, `{"spec":{"toRevision":%d}}`, math.MaxInt64)
		}),
	}
	for _, action := range []string{"restart", "rollback", "pause", "resume"} {
		all = append(all, write("a reason of 1 MB for groups: "+action, http.MethodPost, "/"+action, jsonType, func() []byte {
			return []byte(`{"spec":{"reason":"` + strings.Repeat("r", 1_000_000) + `"}}`)
		}))
	}
	return all
}
