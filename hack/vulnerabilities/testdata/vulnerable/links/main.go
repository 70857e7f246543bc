// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// links uses the vulnerable package without its vulnerable functions.
package main

import (
	"fmt"

	"golang.org/x/text/language"
)

func main() {
	fmt.Println(language.English)
}
