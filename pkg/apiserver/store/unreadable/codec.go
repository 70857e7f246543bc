// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// reading says what becomes of objects that cannot be read.
type reading byte

const (
	// unchanged passes bytes on as they are stored, for updates.
	unchanged reading = iota
	// strict returns an error.
	strict
	// tolerant returns a placeholder.
	tolerant
)

type readingKey struct{}

func withReading(ctx context.Context, how reading) context.Context {
	return context.WithValue(ctx, readingKey{}, how)
}

func readingOf(ctx context.Context) reading {
	how, _ := ctx.Value(readingKey{}).(reading)
	return how
}

// mark begins what the transformer passes to the codec together with the key. It differs in each process, so that
// nothing stored begins with it.
var mark = []byte("jobset-apiserver unreadable " + rand.Text())

// transformer decrypts, and passes the key of an object to the codec.
type transformer struct {
	value.Transformer
}

func newTransformer(next value.Transformer) value.Transformer {
	if next == nil {
		next = identity.NewEncryptCheckTransformer() // as the library does
	}
	return transformer{next}
}

// TransformFromStorage implements value.Transformer.
func (t transformer) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	out, stale, err := t.Transformer.TransformFromStorage(ctx, data, dataCtx)
	how := readingOf(ctx)
	switch {
	case err != nil && Passes(err):
		return out, stale, err
	case err != nil && how != tolerant:
		return out, stale, &damage{err}
	case err != nil:
		return envelope{how: how, key: string(dataCtx.AuthenticatedData()), failure: shown(err)}.encode(), false, nil
	case how == unchanged:
		return out, stale, nil
	}
	return envelope{how: how, key: string(dataCtx.AuthenticatedData()), data: out}.encode(), stale, nil
}

// envelope is what the transformer passes to the codec.
type envelope struct {
	how reading
	key string
	// failure is why the object cannot be decrypted; empty if it can.
	failure string
	data    []byte
}

func (e envelope) encode() []byte {
	out := make([]byte, 0, len(mark)+1+2*binary.MaxVarintLen64+len(e.key)+len(e.failure)+len(e.data))
	out = append(append(out, mark...), byte(e.how))
	for _, text := range []string{e.key, e.failure} {
		out = append(binary.AppendUvarint(out, uint64(len(text))), text...)
	}
	return append(out, e.data...)
}

// open returns false if the data is no envelope.
func open(data []byte) (e envelope, found bool) {
	rest, found := bytes.CutPrefix(data, mark)
	if !found || len(rest) == 0 {
		return e, false
	}
	e.how, rest = reading(rest[0]), rest[1:]
	for _, text := range []*string{&e.key, &e.failure} {
		length, n := binary.Uvarint(rest)
		if n <= 0 || uint64(len(rest)-n) < length {
			return e, false
		}
		*text, rest = string(rest[n:n+int(length)]), rest[n+int(length):]
	}
	e.data = rest
	return e, true
}

// codec decodes, and returns placeholders for what it cannot decode.
type codec struct {
	runtime.Codec
	of *resource
}

// Decode implements runtime.Decoder.
func (c *codec) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	e, found := open(data)
	if !found {
		obj, kind, err := c.decode(data, defaults, into)
		return obj, kind, err
	}
	var obj runtime.Object
	var kind *schema.GroupVersionKind
	err := error(&damage{errors.New(e.failure)})
	if e.failure == "" {
		obj, kind, err = c.decode(e.data, defaults, into)
	}
	if accessor, ok := obj.(metav1.Object); ok && err == nil {
		if mismatch := c.of.named(e.key, accessor); mismatch != nil {
			err = &damage{mismatch}
		}
	}
	if err == nil || e.how != tolerant {
		return obj, kind, err
	}
	return c.placeholder(&e, err, defaults, into)
}

// decode decodes an object, which is no placeholder.
func (c *codec) decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, kind, err := c.Codec.Decode(data, defaults, into)
	if err != nil {
		return obj, kind, &damage{err}
	}
	if accessor, ok := obj.(metav1.Object); ok && unreadable.Is(accessor) {
		delete(accessor.GetAnnotations(), unreadable.Annotation) // a client has set it
	}
	return obj, kind, nil
}

// placeholder returns what takes the place of an object: as if it were stored with what can be read of its metadata and nothing else. It
// has the defaults of its kind, on which clients rely, and its labels, by which watches select it: without them it would count as deleted.
func (c *codec) placeholder(e *envelope, cause error, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj := c.of.newFunc()
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, cause
	}
	name, annotations := c.of.name(e.key), map[string]string{}
	if known := MetadataOf(e.data); known != nil && known.Namespace == name.Namespace && known.Name == name.Name {
		accessor.SetUID(known.UID)
		accessor.SetCreationTimestamp(known.CreationTimestamp)
		accessor.SetOwnerReferences(known.OwnerReferences)
		accessor.SetLabels(known.Labels)
		maps.Copy(annotations, known.Annotations)
	}
	annotations[unreadable.Annotation] = shown(cause)
	accessor.SetNamespace(name.Namespace)
	accessor.SetName(name.Name)
	accessor.SetAnnotations(annotations)
	data, err := runtime.Encode(c.Codec, obj)
	if err != nil {
		return nil, nil, cause
	}
	if into == nil {
		into = c.of.newFunc() // what the codec fills is not remembered as a version of the object
	}
	if err := runtime.SetZeroValue(into); err != nil {
		return nil, nil, cause
	}
	return c.Codec.Decode(data, defaults, into)
}
