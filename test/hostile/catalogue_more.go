// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// patches change the victim.
func patches() []attack {
	merged := func(n int) func() []byte {
		return func() []byte { return []byte(`{"spec":{"replicatedJobs":[` + times(n, numbered("")) + `]}}`) }
	}
	applied := func(n int) func() []byte {
		return func() []byte { return jobSet(victim, times(n, numbered("")), "") }
	}
	return []attack{
		patch("a JSON patch whose copies double", jsonPatch, func() []byte { return copies(10_000, 40) }),
		patch("a JSON patch that copies 100 KB 9,000 times", jsonPatch, func() []byte {
			value := fmt.Sprintf(`{"op":"add","path":"/metadata/annotations","value":{"a":%q}},`, strings.Repeat("x", 100_000))
			return []byte("[" + value + times(9000, func(i int) string {
				return fmt.Sprintf(`{"op":"copy","from":"/metadata/annotations/a","path":"/metadata/annotations/c%d"}`, i)
			}) + "]")
		}),
		patch("a JSON patch of 30,000 operations", jsonPatch, func() []byte {
			return []byte("[" + fill(`{"op":"test","path":"/kind","value":"JobSet"}`) + "]")
		}),
		patch("a merge patch of 1.5 MB of {}", mergePatch, func() []byte { return []byte(`{"spec":{"replicatedJobs":[` + fill(`{}`) + `]}}`) }),
		patch("a strategic merge patch of 3,000 replicatedJobs", strategic, merged(3000)),
		onlyFull(patch("a strategic merge patch of 13,000 replicatedJobs", strategic, merged(13_000))),
		patch("a strategic merge patch that orders 150,000 names", strategic, func() []byte {
			return []byte(`{"spec":{"$setElementOrder/replicatedJobs":[` + fill(`{"name":"j0"}`) + `]}}`)
		}),
		patch("an apply of 3,000 replicatedJobs", applyPatch, applied(3000)),
		onlyFull(patch("an apply of 13,000 replicatedJobs", applyPatch, applied(13_000))),
		patch("an apply of 1.5 MB of {}", applyPatch, func() []byte { return jobSet(victim, fill(`{}`), "") }),
		patch("an apply of YAML aliases", applyPatch, func() []byte { return aliases(9) }),
		patch("an apply in CBOR of 1.5 MB of {}", applyCBOR, func() []byte { return cbor(bodyBytes - 1000) }),
		{name: "an apply with a manager of 900 KB", send: request{
			method: http.MethodPatch, path: "/" + victim, contentType: applyPatch,
			query: url.Values{"fieldManager": {strings.Repeat("m", 900_000)}, "force": {"true"}},
			body:  func() []byte { return jobSet(victim, numbered("")(0), "") },
		}.one},
	}
}

// reads are queries.
func reads() []attack {
	long := func(key, value string) func() url.Values {
		return func() url.Values { return url.Values{key: {value}} }
	}
	values := "a in (" + same(50_000, "bbbbbb") + ")"
	return []attack{
		list("a field selector of 400 KB", http.MethodGet, long("fieldSelector", strings.TrimSuffix(strings.Repeat("metadata.name!=a,", 26_000), ","))),
		list("a label selector of 350 KB", http.MethodGet, long("labelSelector", values)),
		list("a deletecollection with a wrong selector", http.MethodDelete, long("labelSelector", "a in (((")),
		list("a deletecollection with a wrong field", http.MethodDelete, long("fieldSelector", "spec.nothing=1")),
		list("a deletecollection with a selector of 350 KB", http.MethodDelete, long("labelSelector", values)),
		list("a query of 400 KB", http.MethodGet, func() url.Values {
			q := url.Values{}
			for i := range 100_000 {
				q.Add("q", fmt.Sprint(i%10))
			}
			return q
		}),
		list("a continue token of 900 KB", http.MethodGet, long("continue", strings.Repeat("a", 900_000))),
		{name: "an Accept of 500 KB", send: request{method: http.MethodGet, header: map[string]string{"Accept": strings.TrimSuffix(strings.Repeat("a/b;as=Table,", 40_000), ",")}}.one},
		{name: "delete options of 1.5 MB", send: request{
			method: http.MethodDelete, path: "/" + victim, contentType: jsonType,
			body: func() []byte {
				return []byte(`{"kind":"DeleteOptions","apiVersion":"v1","dryRun":[` + fill(`"All"`) + `]}`)
			},
		}.one},
	}
}

// subresources are requests to status, scale and actions of the victim.
func subresources() []attack {
	status := func(name, content string) attack {
		return patch(name, mergePatch, func() []byte { return []byte(`{"status":{` + content + `}}`) })
	}
	put := func(name, sub string, body func() []byte) attack {
		return attack{name: name, send: request{method: http.MethodPut, path: "/" + victim + "/" + sub, contentType: jsonType, body: body}.one}
	}
	scale := func(n int64) func() []byte {
		return func() []byte {
			return fmt.Appendf(nil, `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":%q,"namespace":%q},"spec":{"replicas":%d}}`, victim, hostile, n)
		}
	}
	reason := func() []byte { return []byte(`{"spec":{"reason":"` + strings.Repeat("r", 1_000_000) + `"}}`) }
	withStatus := func(content string) func() []byte {
		return func() []byte {
			return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"JobSet","metadata":{"name":%q},"spec":{"replicatedJobs":[%s]},"status":{%s}}`,
				apiVersion, victim, numbered("")(0), content)
		}
	}
	all := []attack{
		put("a status of 12,000 conditions", "status", withStatus(conditions(12_000))),
		put("a status of 100,000 conditions", "status", withStatus(conditions(100_000))),
		put("a status of 25,000 attempts", "status", withStatus(attempts(25_000))),
		put("a status of 100,000 attempts", "status", withStatus(attempts(100_000))),
		put("a status of 700,000 restarts of Jobs", "status", withStatus(`"replicatedJobsStatus":[{"name":"j0","ready":0,"succeeded":0,"failed":0,"active":0,"suspended":0,"jobRestarts":[`+fill("1")+`]}]`)),
		put("a status of 500,000 empty entries", "status", withStatus(`"replicatedJobsStatus":[`+fill("{}")+`]`)),
		status("a status in the main resource", conditions(1000)),
		put("a scale to -1", "scale", scale(-1)),
		put("a scale to 2,147,483,647", "scale", scale(math.MaxInt32)),
		put("a scale beyond 64 bits", "scale", scale(math.MaxInt64)),
	}
	for _, name := range []string{"restart", "suspend", "resume", "cancel", "retry"} {
		all = append(all, action("a reason of 1 MB: "+name, name, reason))
	}
	return append(all, action("an index of -2,147,483,648", "restart", func() []byte {
		return []byte(`{"spec":{"scope":"Job","replicatedJob":"j0","jobIndex":-2147483648}}`)
	}))
}

// zeros are compressed to a thousandth.
func zeros(size int64) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.CopyN(w, endless("0"), size) // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

// endless repeats a text.
type endless string

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e[i%len(e)]
	}
	return len(p), nil
}

// slow gives one byte a second until its context ends.
type slow struct{ ctx context.Context }

func (s slow) Read(p []byte) (int, error) {
	select {
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-time.After(time.Second):
		p[0] = ' '
		return 1, nil
	}
}

// connections are bodies that are not what they seem.
func connections() []attack {
	post := func(name string, r request) attack {
		r.method, r.contentType = http.MethodPost, jsonType
		return attack{name: name, send: r.one}
	}
	return []attack{
		post("a body of 100 MB", request{stream: func() io.Reader { return io.LimitReader(endless(" "), 100_000_000) }}),
		post("a compressed body of 200 MB", request{header: map[string]string{"Content-Encoding": "gzip"}, body: func() []byte { return zeros(200_000_000) }}),
		{name: "100 bodies of a byte a second", held: true, send: func(ctx context.Context, e *env) answer {
			r := request{method: http.MethodPost, contentType: jsonType, stream: func() io.Reader { return slow{ctx} }}
			return r.parallel(100)(ctx, e)
		}},
		{name: "200 watches", held: true, send: request{method: http.MethodGet, query: url.Values{"watch": {"true"}}}.parallel(200)},
	}
}

// loads are many large requests at the same time.
func loads() []attack {
	wide := func(n int) func() []byte {
		return func() []byte { return jobSetMeta(`"generateName":"wide-"`, times(n, numbered("")), "") }
	}
	post := func(body func() []byte) request {
		return request{method: http.MethodPost, contentType: jsonType, body: body}
	}
	heavy := onlyFull(attack{name: "80 sets of 1,000 replicatedJobs, then 50 lists of them", send: func(ctx context.Context, e *env) answer {
		a := post(wide(1000)).parallel(80)(ctx, e)
		b := request{method: http.MethodGet}.parallel(50)(ctx, e)
		return answer{what: a.what + "; " + b.what, sent: a.sent, received: b.received}
	}})
	return []attack{
		{name: "20 × 1.5 MB of {} at once", send: post(func() []byte { return jobSet("empty", fill(`{}`), "") }).parallel(20)},
		{name: "20 × 3,000 replicatedJobs at once", send: post(wide(3000)).parallel(20)},
		onlyFull(attack{name: "20 × 13,000 replicatedJobs at once", send: post(wide(13_000)).parallel(20)}),
		{name: "20 × 64 patterns of 1 KiB at once", send: post(func() []byte { return patterns(same(64, fmt.Sprintf("%q", strings.Repeat("x{1000}", 146)))) }).parallel(20)},
		onlyFull(attack{name: "100 × 1.5 MB of {} at once", send: post(func() []byte { return jobSet("empty", fill(`{}`), "") }).parallel(100)}),
		heavy,
	}
}
