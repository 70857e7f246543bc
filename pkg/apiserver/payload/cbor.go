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

// scanCBOR counts what a document of CBOR holds. What follows an error is not looked at: the decoder finds the error before it builds anything.
func scanCBOR(data []byte, merged bool) (objects int, err error) {
	c := &counter{merged: merged}
	var frames []cborFrame
	for len(data) > 0 {
		major, info, length, rest, ok := cborHead(data)
		if !ok {
			return c.objects, nil
		}
		data = rest
		if major == cborSimple && info == cborIndefinite { // break
			if len(frames) == 0 {
				return c.objects, nil
			}
			frames = cborLeave(c, frames)
			continue
		}
		if major == cborTag {
			continue // the item that it tags follows
		}
		if err := cborCount(c, frames); err != nil {
			return c.objects, err
		}
		switch major {
		case cborBytes, cborText:
			if info == cborIndefinite {
				frames = append(frames, cborFrame{left: -1})
				c.stack = append(c.stack, frame{})
				continue
			}
			if length > uint64(len(data)) {
				return c.objects, nil
			}
			data = data[length:]
		case cborArray, cborMap:
			if info != cborIndefinite && length > MaxEntries {
				return c.objects, withinEntries(MaxEntries + 1)
			}
			if err := c.open(major == cborArray); err != nil {
				return c.objects, err
			}
			frames = append(frames, cborEnter(major == cborMap, info, length))
		}
		for len(frames) > 0 && frames[len(frames)-1].left == 0 {
			frames = cborLeave(c, frames)
		}
		if len(frames) == 0 {
			return c.objects, nil
		}
	}
	return c.objects, nil
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

// cborCount counts an item of the container that the scan is in. A pair of a map is one entry.
func cborCount(c *counter, frames []cborFrame) error {
	if len(frames) == 0 {
		return nil
	}
	f := &frames[len(frames)-1]
	if f.left > 0 {
		f.left--
	}
	if f.inMap {
		f.key = !f.key
		if !f.key {
			return nil
		}
	}
	return c.entry()
}

func cborEnter(isMap bool, info byte, length uint64) cborFrame {
	f := cborFrame{left: int64(length), inMap: isMap}
	if isMap {
		f.left *= 2
	}
	if info == cborIndefinite {
		f.left = -1
	}
	return f
}

func cborLeave(c *counter, frames []cborFrame) []cborFrame {
	c.close()
	return frames[:len(frames)-1]
}
