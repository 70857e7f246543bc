// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/payload"
)

func TestAnswersAreShort(t *testing.T) {
	many := func(n int) field.ErrorList {
		var errs field.ErrorList
		for i := range n {
			errs = append(errs, field.Required(field.NewPath("list").Index(i), "must be set"))
		}
		return errs
	}
	cases := map[string]struct {
		errs       field.ErrorList
		wantCauses int
		wantLast   string
	}{
		"as many causes as may be": {errs: many(100), wantCauses: 100, wantLast: "Required value: must be set"},
		"a cause too many":         {errs: many(101), wantCauses: 100, wantLast: "and 2 more errors: correct the others first"},
		"a value of a megabyte": {
			errs: field.ErrorList{field.Invalid(field.NewPath("patch"), strings.Repeat("x", 1<<20), "the error")}, wantCauses: 1,
			wantLast: `Invalid value: "` + strings.Repeat("x", 4096),
		},
	}
	scheme, codecs := podScheme()
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	encoder := payload.Bounded(codecs, scheme).EncoderForVersion(info.Serializer, schema.GroupVersion{Version: "v1"})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "a", tc.errs).Status()
			before := status.DeepCopy()
			var b bytes.Buffer
			if err := encoder.Encode(&status, &b); err != nil {
				t.Fatal(err)
			}
			if len(status.Details.Causes) != len(before.Details.Causes) || status.Message != before.Message {
				t.Error("the encoder changed the status that it was given")
			}
			var got metav1.Status
			if err := json.Unmarshal(b.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if n := len(got.Details.Causes); n != tc.wantCauses {
				t.Fatalf("%d causes, want %d", n, tc.wantCauses)
			}
			last := got.Details.Causes[tc.wantCauses-1].Message
			if !strings.HasPrefix(last, tc.wantLast[:min(len(tc.wantLast), 1000)]) || len(last) > 4096 {
				t.Errorf("last cause of %d bytes: %.80s, want %.80s", len(last), last, tc.wantLast)
			}
			if len(got.Message) > 64<<10 || !strings.HasSuffix(before.Message, got.Message[len(got.Message)-5:]) {
				t.Errorf("message of %d bytes", len(got.Message))
			}
		})
	}
}

// The decoder looks at results of patches, which no handler sees, and at protobuf whose kind is not in the body.
func TestDecoderBounds(t *testing.T) {
	scheme, codecs := podScheme()
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	raw, err := pods(20_001, 0).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	anonymous, err := (&runtime.Unknown{Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		media string
		data  []byte
		want  string
	}{
		"JSON within every limit":     {media: runtime.ContentTypeJSON, data: text(`{"metadata":{"name":"a"}}`)},
		"JSON with a long list":       {media: runtime.ContentTypeJSON, data: text(list(`{"spec":{"containers":[`, `{}`, 20_001, `]}}`)), want: entries},
		"protobuf that has no kind":   {media: runtime.ContentTypeProtobuf, data: append(text("k8s\x00"), anonymous...), want: entries},
		"protobuf within every limit": {media: runtime.ContentTypeProtobuf, data: asProtobuf(t, pods(10, 10))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), tc.media)
			decoder := payload.Bounded(codecs, scheme).DecoderToVersion(info.Serializer, corev1.SchemeGroupVersion)
			_, _, err := decoder.Decode(tc.data, &kind, nil)
			if got := fmt.Sprint(err); tc.want == "" && err != nil || !strings.Contains(got, tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// keeper is the buffer of a watch, which keeps what is written to it.
type keeper struct {
	inner runtime.Splice
	kept  int
}

var _ runtime.Splice = &keeper{}

func (k *keeper) Splice(data []byte) { k.inner.Splice(data) }
func (k *keeper) Reset()             { k.inner.Reset() }
func (k *keeper) Bytes() []byte      { return k.inner.Bytes() }

func (k *keeper) Write(data []byte) (int, error) {
	k.kept += len(data)
	return k.inner.Write(data)
}

// TestWatchesKeepNoLargeEvent encodes into the buffer of a watch, which is not made smaller as long as the watch lives.
func TestWatchesKeepNoLargeEvent(t *testing.T) {
	scheme, codecs := podScheme()
	for _, media := range []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf} {
		info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), media)
		encoder := payload.Bounded(codecs, scheme).EncoderForVersion(info.Serializer, schema.GroupVersion{Version: "v1"})
		ways := map[string]func(runtime.Object, *keeper) error{"": func(obj runtime.Object, to *keeper) error { return encoder.Encode(obj, to) }}
		if of, ok := encoder.(runtime.EncoderWithAllocator); ok {
			ways["/memory"] = func(obj runtime.Object, to *keeper) error {
				memory := &atMost{t: t, bytes: 8 << 10}
				return of.EncodeWithAllocator(obj, to, memory)
			}
		}
		for way, encode := range ways {
			t.Run(media+way, func(t *testing.T) {
				for _, size := range []int{1 << 20, 10} {
					pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"a": strings.Repeat("x", size)}}}
					var want bytes.Buffer
					if err := encoder.Encode(pod, &want); err != nil {
						t.Fatal(err)
					}
					to := &keeper{inner: runtime.NewSpliceBuffer()}
					if err := encode(pod, to); err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(to.Bytes(), want.Bytes()) {
						t.Errorf("%d bytes are encoded, want the %d that are encoded otherwise", len(to.Bytes()), want.Len())
					}
					if to.kept > 4<<10 {
						t.Errorf("the buffer keeps %d bytes", to.kept)
					}
				}
			})
		}
	}
}

// atMost is the memory of a watch.
type atMost struct {
	t     *testing.T
	bytes uint64
}

// Allocate implements runtime.MemoryAllocator.
func (m *atMost) Allocate(n uint64) []byte {
	if n > m.bytes {
		m.t.Errorf("the watch keeps %d bytes", n)
	}
	return make([]byte, n)
}
