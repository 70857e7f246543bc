// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/metrics"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/payload"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
	strategy "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// The media types of bodies.
const (
	mediaJSON     = runtime.ContentTypeJSON
	mediaYAML     = runtime.ContentTypeYAML
	mediaCBOR     = runtime.ContentTypeCBOR
	mediaProtobuf = runtime.ContentTypeProtobuf
)

var medias = []string{mediaJSON, mediaYAML, mediaCBOR, mediaProtobuf}

var (
	hub  = schema.GroupVersion{Group: jobset.GroupName, Version: runtime.APIVersionInternal}
	kind = v1alpha2.SchemeGroupVersion.WithKind("JobSet")
)

// server does with bodies what the server does until it stores the object, on create and on update.
type server struct {
	codecs   runtime.NegotiatedSerializer
	handler  http.Handler
	strategy strategy.Strategy
	stored   *jobset.JobSet

	// update makes the next request an update.
	update bool
	// err and obj are the result of the last request that reached a strategy.
	err error
	obj *jobset.JobSet
}

func newServer() *server {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard) // the library logs each error that it finds twice
	scheme, _ := apiserver.NewScheme()
	codecs := serializer.NewCodecFactory(scheme, serializer.WithSerializer(cbor.NewSerializerInfo))
	gates := gates.Gates{InPlaceRestart: true, RestartJob: true, ElasticJobSet: true, JobSetActiveDeadlineSeconds: true, ExecutionAttemptsTracking: true, MutablePodResourcesForSuspendedJobSets: true, JobSetWorkloadAwareSchedulingAPI: true}
	s := &server{codecs: payload.Bounded(codecs, scheme), strategy: strategy.NewStrategy(scheme, gates, time.Now)}
	s.handler = payload.NewHandler(http.HandlerFunc(s.handle), scheme, codecs)
	s.stored = builders.Hub("train", builders.WithHubJobs("launcher", 1, 1), builders.WithHubJobs("workers", 2, 4))
	return s
}

// send returns the code of the answer, and the answer if the request was refused.
func (s *server) send(media string, body []byte, update bool) (int, *metav1.Status) {
	s.update, s.err, s.obj = update, nil, nil
	w := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	req.Header.Set("Content-Type", media)
	s.handler.ServeHTTP(w, req)
	status := &metav1.Status{}
	if w.Code != http.StatusOK {
		if err := runtime.DecodeInto(s.codecs.DecoderToVersion(s.serializer(mediaJSON), nil), w.Body.Bytes(), status); err != nil {
			panic(err)
		}
	}
	return w.Code, status
}

func (s *server) serializer(media string) runtime.Serializer {
	info, _ := runtime.SerializerInfoForMediaType(s.codecs.SupportedMediaTypes(), media)
	if info.StrictSerializer != nil {
		return info.StrictSerializer
	}
	return info.Serializer
}

func (s *server) handle(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err == nil {
		err = s.write(req.Header.Get("Content-Type"), body)
	}
	if err == nil {
		return
	}
	status := apierrors.APIStatus(apierrors.NewBadRequest("decoding"))
	errors.As(err, &status)
	answer := status.Status()
	w.WriteHeader(int(answer.Code))
	if err := s.codecs.EncoderForVersion(s.serializer(mediaJSON), schema.GroupVersion{Version: "v1"}).Encode(&answer, w); err != nil {
		panic(err)
	}
}

func (s *server) write(media string, body []byte) error {
	decoded, _, err := s.codecs.DecoderToVersion(s.serializer(media), hub).Decode(body, &kind, &jobset.JobSet{})
	if err != nil && !runtime.IsStrictDecodingError(err) {
		return err
	}
	obj, ok := decoded.(*jobset.JobSet)
	if !ok {
		return apierrors.NewBadRequest("no JobSet")
	}
	s.obj = obj
	ctx := request.WithNamespace(context.Background(), s.stored.Namespace)
	obj.Namespace = s.stored.Namespace
	if s.update {
		old := s.stored.DeepCopy()
		next, err := bounds.Metadata(rest.DefaultUpdatedObjectInfo(obj), jobset.Kind("JobSet")).UpdatedObject(ctx, old)
		if err == nil {
			err = rest.BeforeUpdate(bounds.UpdateStrategy{RESTUpdateStrategy: s.strategy}, ctx, next, old)
		}
		s.err = err
		return err
	}
	rest.FillObjectMetaSystemFields(obj)
	s.err = rest.BeforeCreate(bounds.CreateStrategy{RESTCreateStrategy: s.strategy}, ctx, obj)
	return s.err
}

// allocated is the number of bytes that the process has allocated so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// The bounds of what a request may cost. Two bytes can be an item of a list with the size of a replicatedJob, which is
// copied a few times; no request may cost more than the absolute bound.
const (
	allocatedBase    = 4 << 20
	allocatedPerByte = 8 << 10
	allocatedAtMost  = 768 << 20
	answerAtMost     = 600 << 10
)

// check sends a body and says what is wrong with the answer or the cost.
func check(t *testing.T, s *server, media string, body []byte, update bool) {
	t.Helper()
	before := allocated()
	code, answer := s.send(media, body, update)
	if used, limit := allocated()-before, min(allocatedBase+allocatedPerByte*uint64(len(body)), allocatedAtMost); used > limit {
		t.Errorf("%s of %d bytes (update: %v): %d bytes allocated, want at most %d", media, len(body), update, used, limit)
	}
	if code == http.StatusOK {
		return
	}
	size := len(answer.Message)
	if answer.Details != nil {
		if n := len(answer.Details.Causes); n > bounds.MaxCauses {
			t.Errorf("%s of %d bytes: %d causes, want at most %d", media, len(body), n, bounds.MaxCauses)
		}
		for _, cause := range answer.Details.Causes {
			size += len(cause.Message) + len(cause.Field)
		}
	}
	if size > answerAtMost {
		t.Errorf("%s of %d bytes: answer of %d bytes, want at most %d", media, len(body), size, answerAtMost)
	}
}

// unchanged says whether an object may be written again as it is, whatever is wrong with it.
func unchanged(t *testing.T, s *server) {
	t.Helper()
	if s.obj == nil {
		return
	}
	if errs := s.strategy.ValidateUpdate(context.Background(), s.obj.DeepCopy(), s.obj); len(errs) > 0 {
		t.Errorf("an unchanged object is refused: %v", errs[0])
	}
	next := s.obj.DeepCopy()
	next.Spec.Suspend = ptr.To(!ptr.Deref(next.Spec.Suspend, false))
	if errs := s.strategy.ValidateUpdate(context.Background(), next, s.obj); len(errs) > 0 {
		t.Errorf("suspend or resume is refused: %v", errs[0])
	}
}
