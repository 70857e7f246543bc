// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package payload

import "encoding/binary"

// The major types of CBOR that have content, and the additional information of lengths that are not known in advance.
const (
	cborBytes  = 2
	cborText   = 3
	cborArray  = 4
	cborMap    = 5
	cborTag    = 6
	cborSimple = 7

	cborIndefinite = 31
)

// cborFrame is a container that the scan is in: how many items are left, or -1 until a break.
type cborFrame struct {
	left  int64
	inMap bool
	key   bool
}

// cborScanner counts what a document of CBOR holds.
type cborScanner struct {
	counter
	frames []cborFrame
}

// scanCBOR counts what a document of CBOR holds. It ignores what follows an error: the decoder finds the error before it
// builds anything.
func scanCBOR(data []byte, merged bool) (objects int, err error) {
	s := &cborScanner{counter: counter{merged: merged}}
	for more := true; more && err == nil && len(data) > 0; {
		data, more, err = s.item(data)
	}
	return s.objects, err
}

// item reads the beginning of one item, and the content of a string. It returns what follows, and whether more of the document
// does.
func (s *cborScanner) item(data []byte) (rest []byte, more bool, err error) {
	major, info, length, data, ok := cborHead(data)
	switch {
	case !ok, len(s.frames) == 0 && major == cborSimple && info == cborIndefinite:
		return nil, false, nil
	case major == cborTag:
		return data, true, nil // the item that it tags follows
	case major == cborSimple && info == cborIndefinite: // break
		s.leave()
	default:
		if err := s.count(); err != nil {
			return nil, false, err
		}
		if data, ok, err = s.content(major, info, length, data); !ok || err != nil {
			return nil, false, err
		}
	}
	for len(s.frames) > 0 && s.frames[len(s.frames)-1].left == 0 {
		s.leave()
	}
	return data, len(s.frames) > 0, nil
}

// content enters a container, or cuts off a string of known length.
func (s *cborScanner) content(major, info byte, length uint64, data []byte) (rest []byte, ok bool, err error) {
	switch major {
	case cborBytes, cborText:
		if info == cborIndefinite {
			s.frames = append(s.frames, cborFrame{left: -1})
			s.stack = append(s.stack, frame{})
			return data, true, nil
		}
		if length > uint64(len(data)) {
			return nil, false, nil
		}
		return data[length:], true, nil
	case cborArray, cborMap:
		if info != cborIndefinite && length > MaxEntries {
			return nil, false, withinEntries(MaxEntries + 1)
		}
		if err := s.open(major == cborArray); err != nil {
			return nil, false, err
		}
		s.frames = append(s.frames, newCBORFrame(major == cborMap, info, length))
	}
	return data, true, nil
}

// cborHead reads the head of an item.
func cborHead(data []byte) (major, info byte, length uint64, rest []byte, ok bool) {
	major, info, data = data[0]>>5, data[0]&31, data[1:]
	switch {
	case info < 24:
		return major, info, uint64(info), data, true
	case info < 28:
		n := 1 << (info - 24)
		if len(data) < n {
			return 0, 0, 0, nil, false
		}
		var padded [8]byte
		copy(padded[8-n:], data[:n])
		return major, info, binary.BigEndian.Uint64(padded[:]), data[n:], true
	case info == cborIndefinite:
		return major, info, 0, data, true
	}
	return 0, 0, 0, nil, false
}

// count counts an item of the container that the scan is in. A pair of a map is one entry.
func (s *cborScanner) count() error {
	if len(s.frames) == 0 {
		return nil
	}
	f := &s.frames[len(s.frames)-1]
	if f.left > 0 {
		f.left--
	}
	if f.inMap {
		f.key = !f.key
		if !f.key {
			return nil
		}
	}
	return s.entry()
}

func (s *cborScanner) leave() {
	s.close()
	s.frames = s.frames[:len(s.frames)-1]
}

func newCBORFrame(isMap bool, info byte, length uint64) cborFrame {
	f := cborFrame{left: int64(length), inMap: isMap}
	if isMap {
		f.left *= 2
	}
	if info == cborIndefinite {
		f.left = -1
	}
	return f
}
