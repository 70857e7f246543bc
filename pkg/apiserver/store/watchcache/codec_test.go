// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"fmt"
	goruntime "runtime"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func newCodec(t testing.TB) runtime.Codec {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	info, _ := runtime.SerializerInfoForMediaType(serializer.NewCodecFactory(scheme).SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	factory := serializer.NewCodecFactory(scheme)
	return NewSharing(factory.CodecForVersions(info.Serializer, factory.UniversalDeserializer(), v1alpha2.SchemeGroupVersion, runtime.InternalGroupVersioner))
}

// newVersion returns a set of the given generation with two replicatedJobs, whose first one has a name that may differ.
func newVersion(uid types.UID, generation int64, name string, restarts int32) *jobset.JobSet {
	fields := &metav1.FieldsV1{}
	fields.SetRawString(fmt.Sprintf(`{"f:spec":{%q:{}}}`, name))
	set := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{
		Name: "train", UID: uid, Generation: generation,
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: fields}},
	}}
	set.Spec.ReplicatedJobs = []jobset.ReplicatedJob{
		{Name: name, GroupName: ptr.To("default"), Replicas: ptr.To[int32](1)}, {Name: "workers", GroupName: ptr.To("default"), Replicas: ptr.To[int32](4)},
	}
	set.Status.Restarts = restarts
	return set
}

// decode stores a version, and decodes it as a watch does.
func decode(t *testing.T, codec runtime.Codec, stored *jobset.JobSet) *jobset.JobSet {
	t.Helper()
	data, err := runtime.Encode(codec, stored)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := runtime.Decode(codec, data)
	if err != nil {
		t.Fatal(err)
	}
	if !apiequality.Semantic.DeepEqual(decoded, stored) {
		t.Fatal(diff.Diff(stored, decoded))
	}
	return decoded.(*jobset.JobSet)
}

func TestVersionsShareWhatIsEqual(t *testing.T) {
	cases := map[string]struct {
		next             *jobset.JobSet
		spec, fieldNames bool
	}{
		"another status": {next: newVersion("a", 1, "driver", 2), spec: true, fieldNames: true},
		"another spec with the same replicatedJobs": {next: newVersion("a", 2, "driver", 1), spec: true, fieldNames: true},
		"other replicatedJobs":                      {next: newVersion("a", 2, "launcher", 1)},
		"another object":                            {next: newVersion("b", 1, "driver", 1)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			codec := newCodec(t)
			first := decode(t, codec, newVersion("a", 1, "driver", 1))
			next := decode(t, codec, tc.next)
			if shared := &first.Spec.ReplicatedJobs[0] == &next.Spec.ReplicatedJobs[0]; shared != tc.spec {
				t.Errorf("replicatedJobs are shared: %v, want %v", shared, tc.spec)
			}
			if shared := first.ManagedFields[0].FieldsV1 == next.ManagedFields[0].FieldsV1; shared != tc.fieldNames {
				t.Errorf("managed fields are shared: %v, want %v", shared, tc.fieldNames)
			}
			goruntime.KeepAlive(first)
		})
	}
}

// The store updates objects that it decoded into an object of its own.
func TestObjectsOfTheCallerShareNothing(t *testing.T) {
	codec := newCodec(t)
	first := decode(t, codec, newVersion("a", 1, "driver", 1))
	data, err := runtime.Encode(codec, first)
	if err != nil {
		t.Fatal(err)
	}
	into := &jobset.JobSet{}
	if _, _, err := codec.Decode(data, nil, into); err != nil {
		t.Fatal(err)
	}
	if &into.Spec.ReplicatedJobs[0] == &first.Spec.ReplicatedJobs[0] || into.ManagedFields[0].FieldsV1 == first.ManagedFields[0].FieldsV1 {
		t.Error("an object that the caller may change shares parts with another one")
	}
}

func TestObjectsThatAreGoneAreForgotten(t *testing.T) {
	codec := newCodec(t)
	for i := range 5 * minSweep {
		decode(t, codec, newVersion(types.UID(fmt.Sprint(i)), 1, "driver", 1))
		if i%100 == 0 {
			goruntime.GC()
		}
	}
	if remembered := len(codec.(*Sharing).last); remembered > 2*minSweep {
		t.Errorf("%d objects are remembered, but at most %d were kept", remembered, 100)
	}
}
