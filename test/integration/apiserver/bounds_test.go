// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// items writes a list with so many items in the middle of a text.
func items(before, item string, n int, after string) string {
	return before + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + after
}

// Requests that stand for large objects are refused, with a short answer, in every format and by every kind of patch.
func TestRequestBounds(t *testing.T) {
	server := plane.StartServer(t, framework.Embedded(framework.ShortDir(t))...)
	e := newEnv(t, server, server.Config(t))
	stored := e.create(t, jobSet("stored", func(js *jobsetv1alpha2.JobSet) {
		js.Annotations = map[string]string{"text": strings.Repeat("x", 2000)}
	}))
	const (
		typed      = `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"a"},"spec":`
		containers = typed + `{"replicatedJobs":[{"name":"w","template":{"spec":{"template":{"spec":{"containers":[`
		end        = `]}}}}}]}}`
		applied    = string(types.ApplyYAMLPatchType)
	)
	labels := stored.DeepCopy()
	labels.SetGroupVersionKind(jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"))
	labels.Labels = map[string]string{}
	for i := range 10_000 {
		labels.Labels[fmt.Sprintf("-%d", i)] = "-"
	}
	badLabels, err := json.Marshal(labels)
	if err != nil {
		t.Fatal(err)
	}
	copies := func(n int) string {
		return items(`[`, `{"op":"copy","from":"/metadata/annotations/text","path":"/metadata/annotations/again"}`, n, `]`)
	}
	cases := map[string]struct {
		method, media, path, body string
		wantCode                  int
		want                      string
		wantCauses                int
	}{
		"a body that is too large":          {method: "POST", body: `{"a":"` + strings.Repeat("x", 1_600_000) + `"}`, wantCode: 413, want: "no more than 1572864 bytes (1.5 MiB)"},
		"a list that is too long":           {method: "POST", body: items(typed+`{"replicatedJobs":[`, `{}`, 400_000, `]}}`), wantCode: 413, want: "no more than 20000 entries"},
		"the same in YAML":                  {method: "POST", media: "application/yaml", body: "spec:\n  replicatedJobs:\n" + strings.Repeat("  - {}\n", 40_000), wantCode: 413, want: "no more than 20000 entries"},
		"aliases":                           {method: "POST", media: "application/yaml", body: "a: &a 1\nb: *a\n", wantCode: 400, want: "no aliases"},
		"too many replicatedJobs":           {method: "POST", body: items(typed+`{"replicatedJobs":[`, `{}`, 20_000, `]}}`), wantCode: 422, want: "must have at most 1000 items", wantCauses: 1},
		"many bad containers":               {method: "POST", body: items(containers, `{}`, 1_900, end), wantCode: 422, want: "and 3700 more errors", wantCauses: 100},
		"too many items":                    {method: "POST", body: items(containers, `{}`, 2_001, end), wantCode: 422, want: "containers: Too many: 2001: must have at most 2000 items", wantCauses: 1},
		"too many objects":                  {method: "POST", body: items(containers, `{}`, 20_000, end), wantCode: 422, want: "at most 20000 objects", wantCauses: 2},
		"many bad labels":                   {method: "PUT", path: "/stored", body: string(badLabels), wantCode: 422, want: "more errors: correct the others first", wantCauses: 100},
		"a merge patch with a long list":    {method: "PATCH", path: "/stored", media: string(types.MergePatchType), body: items(`{"spec":{"replicatedJobs":[`, `{}`, 20_001, `]}}`), wantCode: 413, want: "no more than 20000 entries"},
		"a strategic patch with a long one": {method: "PATCH", path: "/stored", media: string(types.StrategicMergePatchType), body: items(`{"spec":{"replicatedJobs":[`, `{}`, 2001, `]}}`), wantCode: 413, want: "no more than 2000 objects in a list"},
		"server-side apply of a long list":  {method: "PATCH", path: "/a?fieldManager=x", media: applied, body: items(containers, `{"name":"c"}`, 2001, end), wantCode: 413, want: "no more than 2000 objects in a list"},
		"a JSON patch that copies 60 kB":    {method: "PATCH", path: "/stored", media: string(types.JSONPatchType), body: copies(30), wantCode: 200},
		"a JSON patch that copies 80 kB":    {method: "PATCH", path: "/stored", media: string(types.JSONPatchType), body: copies(40), wantCode: 422},
		"a status with many conditions":     {method: "PATCH", path: "/stored/status", media: string(types.MergePatchType), body: items(`{"status":{"conditions":[`, `{}`, 5000, `]}}`), wantCode: 422, want: "must have at most 100 items", wantCauses: 1},
	}
	base := fmt.Sprintf("%s/apis/jobset.x-k8s.io/v1alpha2/namespaces/%s/jobsets", server.URL(), e.namespace)
	client, err := rest.HTTPClientFor(e.config)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, status := exchange(t, client, tc.method, base+tc.path, tc.media, tc.body)
			if code != tc.wantCode || !strings.Contains(status.Message, tc.want) {
				t.Errorf("answer %d %.300s, want %d and %q", code, status.Message, tc.wantCode, tc.want)
			}
			if status.Details != nil && tc.wantCauses > 0 && len(status.Details.Causes) != tc.wantCauses {
				t.Errorf("%d causes, want %d", len(status.Details.Causes), tc.wantCauses)
			}
		})
	}
	e.create(t, jobSet("after"))
}

// exchange sends a body and returns the code and the status of the answer.
func exchange(t *testing.T, client *http.Client, method, url, media, body string) (int, metav1.Status) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if media == "" {
		media = "application/json"
	}
	req.Header.Set("Content-Type", media)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	var status metav1.Status
	if err = errors.Join(err, json.Unmarshal(data, &status)); err != nil {
		t.Fatalf("answer %d %.300s: %v", resp.StatusCode, data, err)
	}
	return resp.StatusCode, status
}
