// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// protobufPrefix begins each object that is stored as protobuf.
var protobufPrefix = []byte("k8s\x00")

const (
	// rawField is the field of the envelope of stored protobuf that has the object, and metadataField that of its metadata in each kind.
	rawField, metadataField = 2, 1
)

// MetadataOf returns what can be read of the metadata of a stored object, which is the first field that is stored:
// damage behind it does not matter. It returns nil if nothing can be read.
func MetadataOf(data []byte) *metav1.ObjectMeta {
	encoded, ok := bytes.CutPrefix(data, protobufPrefix)
	if !ok {
		var object metav1.PartialObjectMetadata
		if json.Unmarshal(data, &object) != nil || object.UID == "" {
			return nil
		}
		return &object.ObjectMeta
	}
	found := &metav1.ObjectMeta{}
	if found.Unmarshal(field(field(encoded, rawField), metadataField)) != nil || found.UID == "" {
		return nil
	}
	return found
}

// field returns a field of a protobuf message. A length that is damaged and too large ends with the message.
func field(message []byte, number protowire.Number) []byte {
	for len(message) > 0 {
		current, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil
		}
		message = message[n:]
		if current == number && kind == protowire.BytesType {
			length, n := protowire.ConsumeVarint(message)
			if n < 0 {
				return nil
			}
			return message[n:][:min(length, uint64(len(message)-n))]
		}
		if n = protowire.ConsumeFieldValue(current, kind, message); n < 0 {
			return nil
		}
		message = message[n:]
	}
	return nil
}
