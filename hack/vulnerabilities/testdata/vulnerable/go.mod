// Two programs with an old module. One of them calls a vulnerable function.
module example.com/vulnerable

go 1.26.0

require golang.org/x/text v0.3.7
