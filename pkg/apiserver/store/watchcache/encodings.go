// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

const (
	// maxEncoded is how many bytes of encoded objects are kept. If there are more, sharing begins again without any.
	maxEncoded = 32 << 20
	// encodedFor is how long they are kept at most.
	encodedFor = 10 * time.Second
)

var errNotEncoded = errors.New("encoding the object has not ended")

// encodings are objects as they were sent lately, one for each format.
type encodings struct {
	mu    sync.Mutex
	known map[encodingKey]*encoding
	bytes int
}

// encodingKey is a version of an object in a format.
type encodingKey struct {
	name    cache.ObjectName
	uid     types.UID
	version string
	format  runtime.Identifier
}

// encoding is made once.
type encoding struct {
	once sync.Once
	raw  []byte
	err  error
}

func newEncodings() *encodings { return &encodings{known: map[encodingKey]*encoding{}} }

func (e *encodings) get(key encodingKey) *encoding {
	e.mu.Lock()
	defer e.mu.Unlock()
	if found := e.known[key]; found != nil {
		return found
	}
	if len(e.known) == 0 {
		time.AfterFunc(encodedFor, e.reset)
	}
	next := &encoding{}
	e.known[key] = next
	return next
}

// add counts the bytes of an encoding.
func (e *encodings) add(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.bytes += n; e.bytes > maxEncoded {
		e.known, e.bytes = map[encodingKey]*encoding{}, 0
	}
}

func (e *encodings) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known, e.bytes = map[encodingKey]*encoding{}, 0
}

// object is what watches are about.
type object interface {
	runtime.Object
	metav1.Object
}

// shared is an object that does not change. It is encoded once for all watches that send this version of it at about the same time.
type shared struct {
	object
	encodings *encodings
}

var _ runtime.CacheableObject = &shared{}

// CacheEncode implements runtime.CacheableObject.
func (s *shared) CacheEncode(format runtime.Identifier, encode func(runtime.Object, io.Writer) error, to io.Writer) error {
	e := s.encodings.get(encodingKey{cache.MetaObjectToName(s), s.GetUID(), s.GetResourceVersion(), format})
	e.once.Do(func() {
		e.err = errNotEncoded // unless encode returns
		var raw []byte
		raw, e.err = encoded(spliced{s.object}, encode)
		e.raw = bytes.Clone(raw) // without the room for more
		s.encodings.add(len(raw))
	})
	if e.err != nil {
		return e.err
	}
	return hand(e.raw, to)
}

// encoded returns what encode writes.
func encoded(obj runtime.Object, encode func(runtime.Object, io.Writer) error) ([]byte, error) {
	var buffer bytes.Buffer
	err := encode(obj, &buffer)
	return buffer.Bytes(), err
}

// hand writes content that does not change. The buffers of a watch refer to it, and do not copy and keep it as long as the watch lives.
func hand(raw []byte, to io.Writer) error {
	if of, ok := to.(runtime.Splice); ok {
		of.Splice(raw)
		return nil
	}
	_, err := to.Write(raw)
	return err
}

// spliced is an object of which the watch that encodes it for all keeps nothing.
type spliced struct{ object }

var _ runtime.CacheableObject = spliced{}

// CacheEncode implements runtime.CacheableObject.
func (s spliced) CacheEncode(_ runtime.Identifier, encode func(runtime.Object, io.Writer) error, to io.Writer) error {
	raw, err := encoded(s.object, encode)
	if err != nil {
		return err
	}
	return hand(raw, to)
}

// GetObject implements runtime.CacheableObject.
func (s spliced) GetObject() runtime.Object { return s.DeepCopyObject() }

// GetObject implements runtime.CacheableObject.
func (s *shared) GetObject() runtime.Object { return s.DeepCopyObject() }
