// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// wire records the media types that a client sends and gets.
type wire struct {
	next http.RoundTripper

	mu        sync.Mutex
	sent, got map[string]bool
}

func (r *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(req)
	r.mu.Lock()
	defer r.mu.Unlock()
	if sent := mediaType(req.Header); sent != "" {
		r.sent[sent] = true
	}
	if err == nil {
		r.got[mediaType(response.Header)] = true
	}
	return response, err
}

func mediaType(h http.Header) string {
	name, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return name
}

// TestRow7_1_32_TypedClient: with upstream's client, replicas of 0 are left out and arrive as 1.
func TestRow7_1_32_TypedClient(t *testing.T) {
	tier.OnRequest(t, "runs on a control plane with nodes; the gate has parity/controller")
	for name, media := range map[string]string{"json": runtime.ContentTypeJSON, "protobuf": runtime.ContentTypeProtobuf} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			record := &wire{sent: map[string]bool{}, got: map[string]bool{}}
			config := rest.CopyConfig(shared.REST)
			config.ContentType, config.AcceptContentTypes = media, media
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { record.next = next; return record })
			client, err := versioned.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			sets := client.JobsetV1alpha2().JobSets(e.namespace)

			ends := func(rj *replicatedJob) {
				rj.Template.Spec.Template.Annotations = map[string]string{"jobset-apiserver.io/kwok-run-seconds": "1"}
			}
			js := builders.JobSet("typed", builders.WithJobs("workers", 2, 1, ends), builders.WithJobs("none", 0, 1, ends))
			js.Namespace = ""
			created, err := sets.Create(t.Context(), js, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := created.Spec.ReplicatedJobs[1].Replicas; ptr.Deref(got, -1) != 0 {
				t.Errorf("replicas of 0 arrived as %d", ptr.Deref(got, -1))
			}
			e.awaitJobs("typed-workers-0", "typed-workers-1")
			e.awaitCompleted("typed")
			list, err := sets.List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != 1 || list.Items[0].Name != "typed" {
				t.Fatalf("the list is %v (%v), want the one set", list, err)
			}
			// Whatever the media type, the object is the same.
			if diff := cmp.Diff(e.get("typed"), &list.Items[0]); diff != "" {
				t.Errorf("the set in JSON and in %s (-JSON +%[1]s):\n%s", name, diff)
			}
			want := map[string]bool{media: true}
			if diff := cmp.Diff(want, record.sent); diff != "" {
				t.Errorf("media types that were sent (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, record.got); diff != "" {
				t.Errorf("media types that were answered (-want +got):\n%s", diff)
			}
		})
	}
}
