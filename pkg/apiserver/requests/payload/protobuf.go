// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"bytes"
	"iter"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// protobufPrefix begins every object that is sent as protobuf.
var protobufPrefix = []byte{'k', '8', 's', 0}

// The wire types of protobuf.
const (
	wireVarint     = 0
	wireFixed64    = 1
	wireBytes      = 2
	wireGroup      = 3
	wireEndOfGroup = 4
	wireFixed32    = 5
)

// protobufScanner counts what messages of known kinds hold. The wire format does not distinguish messages from bytes; the tags
// of the Go types do.
type protobufScanner struct {
	scheme *runtime.Scheme
	types  sync.Map // reflect.Type -> map[uint64]protobufField
}

// protobufField is what the scan needs to know of a field.
type protobufField struct {
	index   int
	message reflect.Type // nil for anything else
	list    bool
}

// scan counts what an object holds. It uses the kind in the envelope, or else the default.
func (s *protobufScanner) scan(data []byte, defaults *schema.GroupVersionKind) (objects int, err error) {
	kind, raw, ok := envelope(data)
	if !ok {
		return 0, nil
	}
	if kind.Empty() {
		if defaults == nil {
			return 0, nil
		}
		kind = *defaults
	}
	obj, err := s.scheme.New(kind)
	if err != nil {
		return 0, nil // the decoder says what it does not know
	}
	c := &counter{}
	err = s.message(c, reflect.TypeOf(obj).Elem(), raw)
	return c.objects, err
}

// envelope returns the kind and the bytes of the object that is in a runtime.Unknown.
func envelope(data []byte) (kind schema.GroupVersionKind, raw []byte, ok bool) {
	data, ok = bytes.CutPrefix(data, protobufPrefix)
	if !ok {
		return kind, nil, false
	}
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(data); err != nil {
		return kind, nil, false
	}
	return schema.FromAPIVersionAndKind(unknown.APIVersion, unknown.Kind), unknown.Raw, true
}

// message counts what one message holds.
func (s *protobufScanner) message(c *counter, t reflect.Type, data []byte) error {
	if err := c.open(false); err != nil {
		return err
	}
	defer c.close()
	known := s.fieldsOf(t)
	counts := make([]int, t.NumField())
	for tag, content := range fields(data) {
		field, ok := known[uint64(uint32(tag>>3))]
		if !ok {
			continue
		}
		counts[field.index]++
		if err := withinEntries(counts[field.index]); err != nil {
			return err
		}
		if field.message == nil || tag&7 != wireBytes {
			continue
		}
		if field.list {
			if err := c.object(); err != nil {
				return err
			}
		}
		if err := s.message(c, field.message, content); err != nil {
			return err
		}
	}
	return nil
}

// fields yields the tag and the content of each field of a message, except those in groups. It stops at malformed data, which is
// left to the decoder: that reads in the same order, and what it reads before the error was counted.
func fields(data []byte) iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		for groups := 0; len(data) > 0 && groups >= 0; {
			tag, n := varint(data)
			if n == 0 {
				return
			}
			content, rest, ok := value(data[n:], tag&7)
			if !ok {
				return
			}
			data = rest
			switch {
			case tag&7 == wireGroup:
				groups++
			case tag&7 == wireEndOfGroup:
				groups--
			case groups == 0 && !yield(tag, content):
				return
			}
		}
	}
}

// value cuts the value of a field off. It returns the content of bytes fields only.
func value(data []byte, wire uint64) (content, rest []byte, ok bool) {
	switch wire {
	case wireVarint:
		_, n := varint(data)
		return nil, data[n:], n > 0
	case wireBytes:
		length, n := varint(data)
		if n == 0 || length > uint64(len(data)-n) {
			return nil, nil, false
		}
		end := n + int(length)
		return data[n:end], data[end:], true
	case wireFixed64, wireFixed32:
		n := 8
		if wire == wireFixed32 {
			n = 4
		}
		if len(data) < n {
			return nil, nil, false
		}
		return nil, data[n:], true
	case wireGroup, wireEndOfGroup:
		return nil, data, true
	}
	return nil, nil, false
}

// varint reads a number as the decoder does, which ignores bits beyond the 64th. It returns the number of bytes, 0 if there is
// no number.
func varint(data []byte) (number uint64, n int) {
	for i := 0; i < len(data) && i < 10; i++ {
		number |= uint64(data[i]&0x7f) << (7 * i)
		if data[i] < 0x80 {
			return number, i + 1
		}
	}
	return 0, 0
}

func (s *protobufScanner) fieldsOf(t reflect.Type) map[uint64]protobufField {
	if known, ok := s.types.Load(t); ok {
		return known.(map[uint64]protobufField)
	}
	fields := map[uint64]protobufField{}
	for i := range t.NumField() {
		parts := strings.Split(t.Field(i).Tag.Get("protobuf"), ",")
		if len(parts) < 2 {
			continue
		}
		number, err := strconv.ParseUint(parts[1], 10, 32)
		if err != nil {
			continue
		}
		field := protobufField{index: i}
		elem := t.Field(i).Type
		if elem.Kind() == reflect.Slice {
			field.list, elem = true, elem.Elem()
		}
		if elem.Kind() == reflect.Pointer {
			elem = elem.Elem()
		}
		if elem.Kind() == reflect.Struct {
			field.message = elem
		}
		fields[number] = field
	}
	s.types.Store(t, fields)
	return fields
}
