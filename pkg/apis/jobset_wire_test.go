// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func newScheme() (*runtime.Scheme, serializer.CodecFactory) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme, serializer.NewCodecFactory(scheme)
}

const typeMeta = "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"

// decode reads YAML as the server does: with defaults.
func decode(t *testing.T, codecs serializer.CodecFactory, text string) *v1alpha2.JobSet {
	t.Helper()
	object, err := runtime.Decode(codecs.UniversalDecoder(v1alpha2.SchemeGroupVersion), []byte(typeMeta+text))
	if err != nil {
		t.Fatalf("decoding %q: %v", text, err)
	}
	return object.(*v1alpha2.JobSet)
}

// through writes the object in a media type and reads it back with defaults.
func through(t *testing.T, codecs serializer.CodecFactory, mediaType string, object *v1alpha2.JobSet) *v1alpha2.JobSet {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
	if !ok {
		t.Fatalf("no serializer for %s", mediaType)
	}
	data, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, v1alpha2.SchemeGroupVersion), object)
	if err != nil {
		t.Fatalf("encoding as %s: %v", mediaType, err)
	}
	out, err := runtime.Decode(codecs.UniversalDecoder(v1alpha2.SchemeGroupVersion), data)
	if err != nil {
		t.Fatalf("decoding %s: %v", mediaType, err)
	}
	return out.(*v1alpha2.JobSet)
}

var mediaTypes = []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf}

func TestAbsentDiffersFromZero(t *testing.T) {
	cases := map[string]struct {
		text          string
		wantReplicas  *int32
		wantGroupName *string
	}{
		"absent fields get their defaults": {
			text:          "spec: {replicatedJobs: [{name: a}]}",
			wantReplicas:  ptr.To[int32](1),
			wantGroupName: ptr.To("default"),
		},
		"explicit zero values stay": {
			text:          `spec: {replicatedJobs: [{name: a, replicas: 0, groupName: ""}]}`,
			wantReplicas:  ptr.To[int32](0),
			wantGroupName: ptr.To(""),
		},
		"explicit nulls are as good as absent": {
			text:          "spec: {replicatedJobs: [{name: a, replicas: null, groupName: null}]}",
			wantReplicas:  ptr.To[int32](1),
			wantGroupName: ptr.To("default"),
		},
		"other values stay": {
			text:          "spec: {replicatedJobs: [{name: a, replicas: 7, groupName: workers}]}",
			wantReplicas:  ptr.To[int32](7),
			wantGroupName: ptr.To("workers"),
		},
	}
	_, codecs := newScheme()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := decode(t, codecs, tc.text)
			for _, mediaType := range append([]string{""}, mediaTypes...) {
				if mediaType != "" {
					object = through(t, codecs, mediaType, object)
				}
				got := object.Spec.ReplicatedJobs[0]
				if diff := cmp.Diff(tc.wantReplicas, got.Replicas); diff != "" {
					t.Errorf("replicas after %q (-want +got):\n%s", mediaType, diff)
				}
				if diff := cmp.Diff(tc.wantGroupName, got.GroupName); diff != "" {
					t.Errorf("groupName after %q (-want +got):\n%s", mediaType, diff)
				}
			}
		})
	}
}

// Pointers to zero inside the spec must come back as such from protobuf too, where a missing pointer would read nil.
func TestPointersToZeroSurvive(t *testing.T) {
	_, codecs := newScheme()
	want := decode(t, codecs, `
spec:
  suspend: false
  managedBy: ""
  ttlSecondsAfterFinished: 0
  network: {enableDNSHostnames: false, publishNotReadyAddresses: false}
  replicatedJobs: [{name: a, template: {spec: {parallelism: 0, completions: 0, backoffLimit: 0}}}]
  activeDeadlineSeconds: 0
status: {previousInPlaceRestartAttempt: 0, currentInPlaceRestartAttempt: 0, executionAttempts: 0, restarts: 0}
`)
	zero := []any{
		want.Spec.Suspend, want.Spec.ManagedBy, want.Spec.TTLSecondsAfterFinished,
		want.Spec.ReplicatedJobs[0].Template.Spec.Parallelism, want.Status.CurrentInPlaceRestartAttempt,
		want.Spec.ActiveDeadlineSeconds, want.Status.ExecutionAttempts,
	}
	wantZero := []any{ptr.To(false), ptr.To(""), ptr.To[int32](0), ptr.To[int32](0), ptr.To[int32](0), ptr.To[int64](0), ptr.To[int32](0)}
	if diff := cmp.Diff(wantZero, zero); diff != "" {
		t.Fatalf("decoded (-want +got):\n%s", diff)
	}
	for _, mediaType := range mediaTypes {
		if diff := cmp.Diff(want, through(t, codecs, mediaType, want)); diff != "" {
			t.Errorf("through %s (-want +got):\n%s", mediaType, diff)
		}
	}
}

func TestKeysOfTheJSONForm(t *testing.T) {
	cases := map[string]struct {
		object v1alpha2.JobSet
		want   string
	}{
		"the status is absent until it is written": {
			want: `{spec: {}}`,
		},
		"the restart counter is always in a written status": {
			object: v1alpha2.JobSet{Status: v1alpha2.JobSetStatus{TerminalState: v1alpha2.TerminalStateFailed}},
			want:   `{spec: {}, status: {restarts: 0, terminalState: Failed}}`,
		},
		"an empty list of conditions counts as written": {
			object: v1alpha2.JobSet{Status: v1alpha2.JobSetStatus{ReplicatedJobsStatus: []v1alpha2.ReplicatedJobStatus{}}},
			want:   `{spec: {}, status: {restarts: 0}}`,
		},
		"the counters of a replicatedJob are always there": {
			object: v1alpha2.JobSet{Status: v1alpha2.JobSetStatus{ReplicatedJobsStatus: []v1alpha2.ReplicatedJobStatus{{Name: "a"}}}},
			want:   `{spec: {}, status: {restarts: 0, replicatedJobsStatus: [{name: a, ready: 0, succeeded: 0, failed: 0, active: 0, suspended: 0}]}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(&tc.object)
			if err != nil {
				t.Fatal(err)
			}
			var got, want map[string]any
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			delete(got, "metadata")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFieldSelectors(t *testing.T) {
	scheme, _ := newScheme()
	cases := map[string]struct {
		label   string
		wantErr bool
	}{
		"by name":                  {label: "metadata.name"},
		"by namespace":             {label: "metadata.namespace"},
		"by suspension":            {label: "spec.suspend"},
		"by terminal state":        {label: "status.terminalState"},
		"by a field that has none": {label: "spec.managedBy", wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			label, value, err := scheme.ConvertFieldLabel(v1alpha2.SchemeGroupVersion.WithKind("JobSet"), tc.label, "x")
			if (err != nil) != tc.wantErr {
				t.Fatalf("error %v, wanted one: %t", err, tc.wantErr)
			}
			if !tc.wantErr && (label != tc.label || value != "x") {
				t.Errorf("got %s=%s, want %s=x", label, value, tc.label)
			}
		})
	}
}
