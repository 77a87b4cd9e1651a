# Times the R package abc on one observation, local linear adjustment.
# Usage: Rscript _abc.R folder n_simulations n_summaries n_parameters tolerance; the
# folder holds X, y and s as raw doubles, column after column. Prints CPU seconds.
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
sizes <- as.integer(arguments[2:4])
read <- function(name, columns, rows = sizes[1]) {
  values <- readBin(file.path(folder, name), "double", rows * columns)
  matrix(values, rows, columns)
}
X <- read("X", sizes[2])
y <- read("y", sizes[3])
s <- read("s", sizes[2], 1)[1, ]
suppressPackageStartupMessages(library(abc))
start <- proc.time()
result <- abc(s, y, X, tol = as.numeric(arguments[5]), method = "loclinear")
cat(sum((proc.time() - start)[1:2]), nrow(result$adj.values), "\n")
