// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/payload"
)

const (
	deep    = "the body must have no more than 100 levels of objects and lists"
	entries = "the body must have no more than 20000 entries in a list or map"
	objects = "the body must have no more than 60000 objects in lists"
	bytes15 = "the body must have no more than 1572864 bytes (1.5 MiB), it has 1572865 or more"
	marks   = "the body must have no more than 200000 characters of YAML that can begin an entry"
	merged  = "the body must have no more than 2000 objects in a list that is merged with what is stored"
	aliases = "the body must have no aliases of YAML: write out what they stand for, or send JSON"
)

func podScheme() (*runtime.Scheme, serializer.CodecFactory) {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	return scheme, serializer.NewCodecFactory(scheme)
}

// list joins so many items.
func list(open, item string, n int, end string) string {
	return open + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + end
}

func text(s string) []byte { return []byte(s) }

func asProtobuf(t *testing.T, pod *corev1.Pod) []byte {
	t.Helper()
	_, codecs := podScheme()
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	var b bytes.Buffer
	if err := info.Serializer.Encode(pod, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func pods(containers, env int) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, containers)}}
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Env = make([]corev1.EnvVar, env)
	}
	return pod
}

func TestBodies(t *testing.T) {
	cases := map[string]struct {
		media string
		body  []byte
		want  string // in the answer; nothing when the body is passed on
	}{
		"JSON within every limit":             {body: text(list(`{"a":[`, `{"b":[1]}`, 20_000, `]}`))},
		"JSON with brackets in strings":       {body: text(`{"a":"` + strings.Repeat(`[{\"`, 1000) + `","b":"\\"}`)},
		"JSON with a long list":               {body: text(list(`{"a":[`, `1`, 20_001, `]}`)), want: entries},
		"JSON with a large map":               {body: text(list(`{"a":{`, `"b":1`, 20_001, `}}`)), want: entries},
		"JSON with many lists of objects":     {body: text(list(`{"a":[`, list(`[`, `{}`, 100, `]`), 600, `]}`)), want: objects},
		"JSON that is deep":                   {body: text(strings.Repeat(`[`, 101)), want: deep},
		"JSON that breaks off":                {body: text(list(`{"a":[`, `{}`, 20_001, ``)), want: entries},
		"a body that is too large":            {body: make([]byte, payload.MaxBytes+1), want: bytes15},
		"a JSON patch":                        {media: "application/json-patch+json", body: text(list(`[`, `{}`, 20_001, `]`)), want: entries},
		"a merge patch":                       {media: "application/merge-patch+json; charset=utf-8", body: text(list(`{"a":[`, `{}`, 20_001, `]}`)), want: entries},
		"a strategic merge patch":             {media: "application/strategic-merge-patch+json", body: text(list(`{"a":[`, `{}`, 2_001, `]}`)), want: merged},
		"a strategic merge patch within":      {media: "application/strategic-merge-patch+json", body: text(list(`{"a":[`, list(`{"b":[`, `{}`, 9, `]}`), 2_000, `]}`))},
		"a strategic merge patch of scalars":  {media: "application/strategic-merge-patch+json", body: text(list(`{"a":[`, `1`, 2_001, `]}`))},
		"server-side apply in JSON":           {media: "application/apply-patch+yaml", body: text(list(`{"a":[`, `{}`, 2_001, `]}`)), want: merged},
		"server-side apply in YAML":           {media: "application/apply-patch+yaml", body: text("a:\n" + strings.Repeat("- {}\n", 2_001)), want: merged},
		"server-side apply in CBOR":           {media: "application/apply-patch+cbor", body: append([]byte("\xa1\x61a\x9f"), bytes.Repeat([]byte("\xa0"), 2_001)...), want: merged},
		"server-side apply with & and * text": {media: "application/apply-patch+yaml", body: text(`{"a":"sleep 1 &b; ls *b"}`)},
		"YAML within every limit":             {media: "application/yaml", body: text("a:\n" + strings.Repeat("- {b: 1}\n", 20_000))},
		"YAML with a long list in blocks":     {media: "application/yaml", body: text("a:\n" + strings.Repeat("- {}\n", 20_001)), want: entries},
		"YAML with a long list in flow":       {media: "application/yaml", body: text(list(`{a: [`, `{}`, 20_001, `]}`)), want: entries},
		"YAML with too many marks":            {media: "application/yaml", body: text(list(`{a: [`, `b`, 200_000, `]}`)), want: marks},
		"YAML that is deep":                   {media: "application/yaml", body: text(strings.Repeat(`[`, 101) + strings.Repeat(`]`, 101)), want: deep},
		"YAML with an alias":                  {media: "application/yaml", body: text("a: &x 1\nb: *x\n"), want: aliases},
		"YAML with an anchor and text":        {media: "application/yaml", body: text("a: &x 1\nb: 2 *x\n")},
		"CBOR within every limit":             {media: "application/cbor", body: append([]byte("\xd9\xd9\xf7\xa1\x61a\x99\x4e\x20"), bytes.Repeat([]byte("\xa0"), 20_000)...)},
		"CBOR with a long list":               {media: "application/cbor", body: []byte("\xa1\x61a\x9a\x00\x00\x4e\x21\xa0"), want: entries},
		"CBOR with a list of no length":       {media: "application/cbor", body: append([]byte("\xa1\x61a\x9f"), bytes.Repeat([]byte("\xa0"), 20_001)...), want: entries},
		"CBOR with lists of no length inside": {media: "application/cbor", body: slices.Concat([]byte("\x9f"), bytes.Repeat([]byte("\x81\x9f\xff"), 200), []byte("\xff"))},
		"CBOR with a map of no length":        {media: "application/cbor", body: append([]byte("\xbf"), bytes.Repeat([]byte("\x60\x00"), 20_001)...), want: entries},
		"CBOR with many lists of objects":     {media: "application/apply-patch+cbor", body: bytes.Join([][]byte{[]byte("\x9f"), bytes.Repeat(append([]byte("\x98\x64"), bytes.Repeat([]byte("\xa0"), 100)...), 600)}, nil), want: objects},
		"CBOR that is deep":                   {media: "application/cbor", body: bytes.Repeat([]byte("\x81"), 101), want: deep},
		"protobuf within every limit":         {media: runtime.ContentTypeProtobuf, body: asProtobuf(t, pods(200, 50))},
		"protobuf with a long list":           {media: runtime.ContentTypeProtobuf, body: asProtobuf(t, pods(20_001, 0)), want: entries},
		"protobuf with many lists of objects": {media: runtime.ContentTypeProtobuf, body: asProtobuf(t, pods(2000, 30)), want: objects},
		"an unknown media type":               {media: "text/plain", body: []byte("hello")},
	}
	scheme, codecs := podScheme()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var passed []byte
			handler := payload.NewHandler(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
				passed, _ = io.ReadAll(req.Body)
			}), scheme, codecs)
			req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(tc.body))
			req.Header.Set("Content-Type", tc.media)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, req)
			switch {
			case tc.want == "" && !bytes.Equal(passed, tc.body):
				t.Errorf("the next handler read %d of %d bytes: %s", len(passed), len(tc.body), w.Body)
			case tc.want != "" && (passed != nil || w.Code < 400 || !strings.Contains(w.Body.String(), tc.want)):
				t.Errorf("answer %d %s, want %q", w.Code, w.Body, tc.want)
			}
		})
	}
}

// TestCodes: the status code fits the kind of refusal.
func TestCodes(t *testing.T) {
	scheme, codecs := podScheme()
	handler := payload.NewHandler(http.NotFoundHandler(), scheme, codecs)
	for body, want := range map[string]int{
		list(`[`, `1`, 20_001, `]`): http.StatusRequestEntityTooLarge,
		"a: &x 1\nb: *x\n":          http.StatusBadRequest,
	} {
		req := httptest.NewRequest(http.MethodPut, "/", strings.NewReader(body))
		req.Header.Set("Content-Type", "application/yaml")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		if w.Code != want {
			t.Errorf("%.20q: %d, want %d", body, w.Code, want)
		}
	}
}

// A varint may be longer than the number needs. The decoder accepts that, so that the scan must not stop there.
func TestLongVarintsHideNothing(t *testing.T) {
	raw := []byte("\x12\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02") // spec, of a length with lost bits: empty
	spec := bytes.Repeat([]byte("\x12\x00"), 20_001)              // containers
	raw = append(raw, 0x12, byte(len(spec)&0x7f|0x80), byte(len(spec)>>7&0x7f|0x80), byte(len(spec)>>14))
	raw = append(raw, spec...)
	body, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if err := (&corev1.Pod{}).Unmarshal(raw); err != nil {
		t.Fatalf("the decoder does not accept the body, so that nothing is shown: %v", err)
	}
	scheme, codecs := podScheme()
	w := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(append([]byte("k8s\x00"), body...)))
	req.Header.Set("Content-Type", runtime.ContentTypeProtobuf)
	payload.NewHandler(http.NotFoundHandler(), scheme, codecs).ServeHTTP(w, req)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("answer %d %s, want %d", w.Code, w.Body, http.StatusRequestEntityTooLarge)
	}
}

// Bodies with many objects wait for each other, others do not.
func TestLargeBodiesWait(t *testing.T) {
	scheme, codecs := podScheme()
	entered, leave := make(chan int), make(chan struct{})
	handler := payload.NewHandler(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		entered <- int(req.ContentLength)
		<-leave
	}), scheme, codecs)
	large := list(`[`, list(`[`, `{}`, 100, `]`), 500, `]`)
	done := make(chan struct{})
	send := func(body string) {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		done <- struct{}{}
	}
	go send(large)
	<-entered
	go send(large)
	go send(`{}`)
	if n := <-entered; n != 2 {
		t.Fatalf("a body of %d bytes was passed on, want the small one", n)
	}
	leave <- struct{}{}
	leave <- struct{}{}
	if n := <-entered; n != len(large) {
		t.Fatalf("a body of %d bytes was passed on, want the second large one", n)
	}
	leave <- struct{}{}
	for range 3 {
		<-done
	}
}
