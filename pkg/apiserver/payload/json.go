// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package payload

// scanJSON counts what a document of JSON holds. Whatever a decoder reads before it finds an error is counted.
func scanJSON(data []byte, merged bool) (objects int, err error) {
	c := &counter{merged: merged}
	fresh := false // the list or map that was entered last has no entry yet
	for i := 0; i < len(data) && err == nil; i++ {
		b := data[i]
		switch b {
		case ' ', '\t', '\n', '\r':
			continue
		case '}', ']':
			c.close()
			fresh = false
			continue
		case ',':
			err = c.entry()
			continue
		}
		if fresh {
			fresh = false
			if err = c.entry(); err != nil {
				break
			}
		}
		switch b {
		case '{', '[':
			err = c.open(b == '[')
			fresh = true
		case '"':
			i = endOfString(data, i)
		}
	}
	return c.objects, err
}

// endOfString returns the index of the quote that ends the string.
func endOfString(data []byte, start int) int {
	for i := start + 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(data)
}
