// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
)

const (
	maxMessage = 64 << 10
	maxCause   = 4 << 10
	// maxKept is how many bytes the buffers of a watch may have while it waits for the next event.
	maxKept = 4 << 10
)

// Bounded returns a serializer that decodes nothing over the bounds, and encodes no answer with too many or too long causes. The
// decoder sees what no handler can see: the results of patches, and protobuf that does not name its kind. Watches keep no large
// event that they have sent.
func Bounded(s runtime.NegotiatedSerializer, scheme *runtime.Scheme) runtime.NegotiatedSerializer {
	return bounded{NegotiatedSerializer: s, scan: &protobufScanner{scheme: scheme}}
}

type bounded struct {
	runtime.NegotiatedSerializer
	scan *protobufScanner
}

func (b bounded) DecoderToVersion(d runtime.Decoder, v runtime.GroupVersioner) runtime.Decoder {
	return decoder{Decoder: b.NegotiatedSerializer.DecoderToVersion(d, v), scan: b.scan}
}

func (b bounded) EncoderForVersion(e runtime.Encoder, v runtime.GroupVersioner) runtime.Encoder {
	return encoder{Encoder: b.NegotiatedSerializer.EncoderForVersion(e, v)}
}

type decoder struct {
	runtime.Decoder
	scan *protobufScanner
}

// Decode looks at the data itself to see what it is: all other formats begin otherwise, and have been scanned as bodies.
func (d decoder) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	var err error
	if bytes.HasPrefix(data, protobufPrefix) {
		_, err = d.scan.scan(data, defaults)
	} else if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		_, err = scanJSON(data, false)
	}
	if err != nil {
		return nil, nil, err
	}
	return d.Decoder.Decode(data, defaults, into)
}

type encoder struct {
	runtime.Encoder
}

var _ runtime.EncoderWithAllocator = encoder{}

func (e encoder) Encode(obj runtime.Object, w io.Writer) error {
	if of, ok := w.(runtime.Splice); ok {
		return e.splice(obj, of)
	}
	return e.Encoder.Encode(short(obj), w)
}

// splice encodes for a watch. Its buffers live as long as it does and only grow, so a large event goes into a buffer of
// its own, to which they refer until it is sent.
func (e encoder) splice(obj runtime.Object, to runtime.Splice) error {
	var own bytes.Buffer
	if err := e.Encoder.Encode(short(obj), &own); err != nil {
		return err
	}
	if own.Len() > maxKept {
		to.Splice(own.Bytes())
		return nil
	}
	_, err := to.Write(own.Bytes())
	return err
}

func (e encoder) EncodeWithAllocator(obj runtime.Object, w io.Writer, memory runtime.MemoryAllocator) error {
	if of, ok := w.(runtime.Splice); ok {
		return e.splice(obj, of) // the memory belongs to a watch, too
	}
	if inner, ok := e.Encoder.(runtime.EncoderWithAllocator); ok {
		return inner.EncodeWithAllocator(short(obj), w, memory)
	}
	return e.Encode(obj, w)
}

// short returns an answer with fewer and shorter causes, if it has too many or too long ones.
func short(obj runtime.Object) runtime.Object {
	status, ok := obj.(*metav1.Status)
	if !ok || status.Details == nil || within(status) {
		return obj
	}
	status = status.DeepCopy()
	status.Message = middleOut(status.Message, maxMessage)
	causes := status.Details.Causes
	if more := len(causes) - bounds.MaxCauses + 1; more > 1 {
		causes = append(causes[:bounds.MaxCauses-1], metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueInvalid, Message: fmt.Sprintf("and %d more errors: correct the others first", more),
		})
	}
	for i := range causes {
		causes[i].Message = middleOut(causes[i].Message, maxCause)
		causes[i].Field = middleOut(causes[i].Field, maxCause)
	}
	status.Details.Causes = causes
	return status
}

func within(status *metav1.Status) bool {
	if len(status.Message) > maxMessage || len(status.Details.Causes) > bounds.MaxCauses {
		return false
	}
	for _, cause := range status.Details.Causes {
		if len(cause.Message) > maxCause || len(cause.Field) > maxCause {
			return false
		}
	}
	return true
}

// middleOut keeps both ends of a text that is too long: values come first, and what is wrong with them last.
func middleOut(text string, limit int) string {
	const mark = " ... "
	if len(text) <= limit {
		return text
	}
	half := (limit - len(mark)) / 2
	return strings.ToValidUTF8(text[:half], "") + mark + strings.ToValidUTF8(text[len(text)-half:], "")
}
